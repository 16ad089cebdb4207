"""The agent's spec: defaults, bounds, and the few rules that need more than a bound."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agents.spec import REFUSED, USUAL_TOOLS, AgentSpec, JobsSpec, ModelSpec, PriceSpec, ToolName, WindowSpec
from tests.kit.tables import each_row


def spec(**options: Any) -> AgentSpec:
    return AgentSpec.model_validate({"name": "ada", **options})


def refusals(**options: Any) -> list[tuple[tuple[int | str, ...], str]]:
    with pytest.raises(ValidationError) as caught:
        spec(**options)
    return [(detail["loc"], detail["type"]) for detail in caught.value.errors()]


def openai(**options: Any) -> dict[str, Any]:
    return {"provider": "openai", "model": "m", **options}


def test_name_is_all_an_agent_needs() -> None:
    """The first agent of one's own should take one line."""
    agent = spec()
    assert agent.models == ()
    assert agent.tools == USUAL_TOOLS and {*USUAL_TOOLS} == {*get_args(ToolName)} - {"memory_stats"}
    assert agent.window_tokens == 32_000
    assert agent.memory.enabled


def test_spec_is_frozen() -> None:
    agent = spec()
    with pytest.raises(ValidationError):
        agent.name = "eve"


@each_row("name", ["", "Ada", "1a", "a b", "a" * 33, "ада", "a\n", "../x"])
def test_name_must_be_a_plain_word(name: str) -> None:
    """It is typed after /agent and stored in rows."""
    assert refusals(name=name) == [(("name",), "string_pattern_mismatch")]


@each_row("section", ["window", "memory", "routing", "models", "rules", "tools"])
def test_section_left_empty_means_its_defaults(section: str) -> None:
    """Commenting out all options of a section leaves its name behind, which reads as null."""
    assert spec(**{section: None}) == spec()


def test_scalar_left_empty_is_refused() -> None:
    """`timezone:` with nothing after it is a forgotten value, not a wish for the default."""
    assert refusals(timezone=None) == [(("timezone",), "string_type")]


@each_row(
    ("options", "place"),
    [
        ({"window": {"messages": 0}}, ("window", "messages")),
        ({"window": {"messages": True}}, ("window", "messages")),
        ({"window": {"tokens": 10}}, ("window", "tokens")),
        ({"memory": {"recall_items": -1}}, ("memory", "recall_items")),
        ({"memory": {"recall_items": 1.5}}, ("memory", "recall_items")),
        ({"models": [openai(temperature=2.1)]}, ("models", 0, "temperature")),
        ({"models": [openai(temperature="nan")]}, ("models", 0, "temperature")),
        ({"models": [openai(temperature=False)]}, ("models", 0, "temperature")),
        ({"models": [openai(timeout=0)]}, ("models", 0, "timeout")),
        ({"models": [openai(timeout="inf")]}, ("models", 0, "timeout")),
        ({"models": [openai(sees="images")]}, ("models", 0, "sees")),
        ({"models": [openai(context=100)]}, ("models", 0, "context")),
        ({"models": [openai(provider="antropic")]}, ("models", 0, "provider")),
        ({"tools": ["shell"]}, ("tools", 0)),
        ({"rules": [""]}, ("rules", 0)),
        ({"language": "tlh"}, ("language",)),
        ({"jobs": {"compress": "24:00"}}, ("jobs", "compress")),
        ({"jobs": {"compress": "3:00"}}, ("jobs", "compress")),
        ({"jobs": {"compress": False}}, ("jobs", "compress")),
        ({"jobs": {"compress": "monday 03:00"}}, ("jobs", "compress")),
        ({"jobs": {"reflect": "03:30"}}, ("jobs", "reflect")),
        ({"jobs": {"reflect": "someday 03:30"}}, ("jobs", "reflect")),
        ({"jobs": {"cook": "03:30"}}, ("jobs", "cook")),
        ({"colour": "red"}, ("colour",)),
        ({"models": [openai(kye="x")]}, ("models", 0, "kye")),
    ],
)
def test_option_out_of_its_bounds_is_refused(options: dict[str, Any], place: tuple[int | str, ...]) -> None:
    """Every number has a limit, true is no number, and no option is ignored."""
    assert [where for where, _ in refusals(**options)] == [place]


def test_numbers_may_come_from_variables_as_text() -> None:
    """A value that is filled in from the environment is always text."""
    agent = spec(models=[openai(context="4096", temperature="0.5")])
    assert (agent.models[0].context, agent.models[0].temperature) == (4096, 0.5)


def test_a_model_sees_only_when_it_is_said_to() -> None:
    """A model that takes no pictures would refuse the whole request."""
    agent = spec(models=[openai(), openai(sees=True)])
    assert [model.sees for model in agent.models] == [False, True]


def test_openai_needs_a_model_and_offline_does_not() -> None:
    """Without a name every call would fail, at the first message instead of at the start."""
    assert refusals(models=[{"provider": "openai"}]) == [(("models", 0, "model"), REFUSED)]
    assert refusals(models=[openai(model="  ")]) == [(("models", 0, "model"), REFUSED)]
    assert spec(models=[{"provider": "offline"}]).models[0].model == ""


@each_row(
    "address",
    [
        "http://localhost:11434/v1", "http://[::1]:8080", "http://my_box:1/v1", "https://llm.example.org/a/b",
        "http://10.0.0.2",
    ],
)  # fmt: skip
def test_server_address_may_be_anywhere(address: str) -> None:
    """People run models on their own machines, in containers and beside the cloud."""
    assert ModelSpec.model_validate(openai(base_url=address + "/")).base_url == address


@each_row(
    "address",
    [
        "", "localhost:11434", "ftp://host/v1", "file:///etc/passwd", "http://", "http:///v1", "http://host:99999",
        "http://host:0", "http://host:x", "http://[::1", "http://[zz]", "http://a b/", "http://host/\nX: y",
        "https://user:secret@host/v1", "https://host/v1?key=x", "https://host/v1#x",
    ],
)  # fmt: skip
def test_server_address_must_be_plain(address: str) -> None:
    """An odd address would send the key somewhere else, or show it in logs."""
    ((place, _),) = refusals(models=[openai(base_url=address)])
    assert place == ("models", 0, "base_url")


@each_row("key", ["", "a b", "key\n", "ключ", "a\x00"])
def test_key_must_fit_into_a_header(key: str) -> None:
    """A line break copied along is the most common fault of a key, and the hardest to see."""
    assert refusals(models=[openai(key=key)]) == [(("models", 0, "key"), REFUSED)]


def test_key_is_not_shown() -> None:
    agent = spec(models=[openai(key="sk-hush")])
    assert "sk-hush" not in repr(agent) + str(agent) + agent.model_dump_json()
    with pytest.raises(ValidationError) as caught:
        spec(models=[openai(key="sk-hush", nope=1)], rules="sk-hush")
    assert "sk-hush" not in str(caught.value)


@each_row(
    ("timezone", "example"),
    [
        ("Europe/Lisbonn", "Europe/Lisbon"), ("europe/paris ", "Europe/Paris"), ("New York", None), ("Europe", None),
        ("../../etc/passwd", None), ("/etc/passwd", None), ("", None), ("a\x00b", None),
    ],
)  # fmt: skip
def test_unknown_timezone_is_refused_with_an_example(timezone: str, example: str | None) -> None:
    """Folders, paths and typing errors of the list end in four different exceptions otherwise."""
    with pytest.raises(ValidationError) as caught:
        spec(timezone=timezone)
    (detail,) = caught.value.errors()
    assert detail["type"] == REFUSED
    assert (example or "/") in detail["ctx"]["fix"]


def test_tool_is_listed_once() -> None:
    """Vendors refuse a request with two tools of one name."""
    assert refusals(tools=["now", "now"]) == [(("tools",), REFUSED)]


def test_tools_may_be_none() -> None:
    assert spec(tools=[]).tools == ()


def test_answer_must_leave_room_in_the_context() -> None:
    """Otherwise every request is refused by the vendor."""
    assert refusals(models=[openai(context=4096, max_tokens=4096)]) == [(("models", 0, "max_tokens"), REFUSED)]


def test_window_must_fit_the_first_model() -> None:
    """A window larger than the context would overflow it in every long conversation."""
    assert refusals(models=[openai(context=4096)], window={"tokens": 5000}) == [(("window",), REFUSED)]
    assert spec(models=[openai(context=8192)], window={"tokens": 8192}).window_tokens == 8192


@given(st.integers(2048, 10_000_000), st.none() | st.integers(500, 10_000_000))
def test_window_never_exceeds_context_nor_cap(context: int, tokens: int | None) -> None:
    """Compaction relies on the window being smaller than what the model can read."""
    model = ModelSpec(provider="openai", model="m", context=context)
    if tokens is not None and tokens > context:
        return
    agent = AgentSpec(name="a", models=(model,), window=WindowSpec(tokens=tokens))
    assert agent.window_tokens == (tokens if tokens is not None else min(context // 2, 32_000))


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("people", "telegram:12345", ["12345", "Telegram:1", "telegram:", "telegram:1:2", "telegram:a b"]),
        ("threads", "telegram:-1001:45", ["telegram:-1001", "a:b:c:d", "::", "a: :b"]),
        ("chats", "discord:99", ["discord", "discord:", "a:b:c"]),
        ("channels", "console", ["", "a:b", "a b"]),
    ],
)
def test_routing_rule_must_have_its_form(kind: str, good: str, bad: list[str]) -> None:
    """A rule that can match nothing would be obeyed silently."""
    assert getattr(spec(routing={kind: [good]}).routing, kind) == (good,)
    for rule in bad:
        assert refusals(routing={kind: [rule]}) == [(("routing", kind, 0), "string_pattern_mismatch")]


@each_row("database", ["../x.db", "a/b.db", "A.db", "x", ".db", "x.db-wal", "x.sqlite", "x.db\n", ""])
def test_database_must_be_a_plain_file_name(database: str) -> None:
    """It must stay inside the data folder and be one file on every system."""
    assert refusals(database=database) == [(("database",), "string_pattern_mismatch")]
    assert spec(database="work-2.db").database == "work-2.db"


# Prices ---------------------------------------------------------------------------------------------------------


def test_a_price_is_for_a_million_tokens() -> None:
    """As vendors print it; what comes from their cache is cheaper where they say so."""
    (model,) = spec(models=[openai(price={"input": 2, "cached": 0.5, "output": 8})]).models
    assert model.price is not None
    assert model.price.cost(1_000_000, 0, 0) == 2
    assert model.price.cost(1_000_000, 1_000_000, 500_000) == 0.5 + 4
    (plain,) = spec(models=[openai(price={"input": 2, "output": 8})]).models
    assert plain.price is not None and plain.price.cost(10, 5, 0) == plain.price.cost(10, 0, 0)


@each_row(
    ("price", "place", "kind"),
    [
        ({"input": 1}, "output", "missing"),
        ({"output": 1}, "input", "missing"),
        ({"input": -1, "output": 1}, "input", "greater_than_equal"),
        ({"input": 1, "output": True}, "output", "value_error"),
        ({"input": 1, "output": 1, "cached": "free"}, "cached", "float_parsing"),
        ({"input": 1, "output": float("inf")}, "output", "finite_number"),
        ({"input": 1, "output": 1, "euro": 1}, "euro", "extra_forbidden"),
    ],
)
def test_half_a_price_is_no_price(price: dict[str, Any], place: str, kind: str) -> None:
    """A cost that leaves out what is written would look cheap."""
    assert refusals(models=[openai(price=price)]) == [(("models", 0, "price", place), kind)]


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_no_call_costs_less_than_nothing(read: int, cached: int, written: int) -> None:
    """Also where a vendor counts more cached tokens than read ones."""
    price = PriceSpec(input=3, cached=1, output=2)
    assert 0 <= price.cost(read, cached, written) <= PriceSpec(input=3, output=2).cost(read, cached, written)


def test_jobs_have_the_times_of_the_design_and_can_be_moved_or_switched_off() -> None:
    told = {name: (when.weekday, when.at.isoformat("minutes")) for name, when in spec().jobs.times.items()}
    assert told == {
        "enrich": (None, "02:00"), "compress": (None, "03:00"), "reflect": (6, "03:30"), "merge": (6, "04:00"),
        "compare": (None, "04:15"), "decay": (None, "04:30"), "manner": (None, "04:40"), "tidy": (None, "05:00"),
    }  # fmt: skip
    moved = {
        name: (when.weekday, when.at.isoformat("minutes")) for name, when in JobsSpec(night=" 22:45 ").times.items()
    }
    assert (moved["enrich"], moved["reflect"], moved["tidy"]) == ((None, "22:45"), (0, "00:15"), (None, "01:45"))
    assert JobsSpec(week="off").times.keys() == JobsSpec().times.keys() - {"reflect", "merge"}
    assert JobsSpec(night="off").times == {}


def test_a_provider_by_name_brings_its_address_and_context() -> None:
    claude = ModelSpec.model_validate({"provider": "anthropic", "model": "claude-haiku-4-5", "key": "k"})
    assert (claude.base_url, claude.context, claude.slots) == ("https://api.anthropic.com/v1", 200_000, None)
    local = ModelSpec.model_validate({"provider": "ollama", "model": "qwen3:8b", "context": 8192})
    assert (local.base_url, local.context, local.slots) == ("http://localhost:11434/v1", 8192, 1)


def test_a_server_on_this_machine_has_one_slot_unless_it_is_said_to_have_more() -> None:
    """Most do one thing at a time, and people would wait behind readings."""
    for address, slots in (
        ("http://localhost:8080/v1", 1),
        ("http://127.0.0.1:1", 1),
        ("https://llm.example.org", None),
    ):
        assert ModelSpec.model_validate(openai(base_url=address)).slots == slots
    assert ModelSpec.model_validate(openai(base_url="http://localhost:1/v1", slots=4)).slots == 4


@each_row(
    ("options", "place"),
    [
        ({"provider": "groq", "model": "m"}, "key"),
        ({"provider": "ollama"}, "model"),
        (openai(top_p=0), "top_p"),
        (openai(headers={"X Title": "a"}), "headers"),
        (openai(headers={"X-Title": "a\nb"}), "headers"),
        (openai(extra_body={"messages": []}), "extra_body"),
        (openai(extra_body={"temperature": 1}), "extra_body"),
        (openai(thinking=2000), "thinking"),
        ({"provider": "anthropic", "model": "m", "key": "k", "thinking": 2000, "max_tokens": 2000}, "thinking"),
    ],
)
def test_a_models_options_that_can_only_fail_are_refused(options: dict[str, Any], place: str) -> None:
    (where, _), *others = refusals(models=[options])
    assert not others and place in str((*where, *_at(options)))


def _at(options: dict[str, Any]) -> list[str]:
    """The places that validators name themselves, below the model."""
    with pytest.raises(ValidationError) as caught:
        ModelSpec.model_validate(options)
    return [str(error.get("ctx", {}).get("at", "")) for error in caught.value.errors()]


def test_an_allowance_of_money_needs_the_price_of_every_model() -> None:
    """A call without a price would count for nothing."""
    priced = openai(price={"input": 1, "output": 2})
    money = {"person": {"tokens": 100}, "chat": {"cost": 0.5}}
    assert refusals(models=[priced, openai()], allowance=money) == [(("allowance",), REFUSED)]
    assert list(spec(models=[priced], allowance=money).allowance.portions) == ["person", "chat"]
    assert spec(models=[priced, {"provider": "offline"}], allowance=money).allowance.chat.cost == 0.5
    assert spec(models=[openai()], allowance={"person": {"tokens": 100}}).allowance.person.tokens == 100


@each_row("portion", [{"tokens": 0}, {"tokens": True}, {"cost": 0}, {"cost": -1}, {"money": 1}])
def test_a_portion_of_a_day_is_more_than_nothing(portion: dict[str, Any]) -> None:
    ((place, _),) = refusals(allowance={"person": portion})
    assert place == ("allowance", "person", next(iter(portion)))


def test_no_portion_is_set_unless_the_file_sets_one() -> None:
    assert spec().allowance.portions == {} and spec(allowance={"person": {}}).allowance.portions == {}
