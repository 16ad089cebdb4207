"""The text of a summary: what a model is asked, what is taken of its answer, and what stands in for it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.budget import count_tokens
from memory.chat import summary
from memory.chat.summary import Summary
from memory.learn.agents import Rotation
from memory.learn.answer import Unreadable
from memory.store.history import Message
from tests.kit.tables import each_row

_DAY = int(datetime(2026, 5, 3, 10, tzinfo=UTC).timestamp() * 1000)


def message(n: int, text: str, *, role: str = "user", name: str = "Ada", author: int | None = 1) -> Message:
    return Message(
        id=n, session_id=1, turn_id=n, role=role, author_id=author if role == "user" else None, author_name=name,
        text=text, tokens=count_tokens(text), learn=True, recall=True, sitting=1, nth=n, said_at=_DAY + n * 1000,
        platform_ref=None, tool_calls=None, tool_call_id=None,
    )  # fmt: skip


def asked(*messages: Message, before: str = "", tokens: int = 1_000) -> str:
    given = Summary(text=before, task="plan a trip")
    return summary.ask(messages, given, timezone="UTC", tokens=tokens, count=count_tokens).material


def read(answer: str, *covered: str, tokens: int = 500) -> Summary:
    return summary.read(answer, covered=covered, tokens=tokens, count=count_tokens)


def test_a_model_reads_the_summary_before_the_task_and_what_was_said() -> None:
    """Otherwise each summary would forget what the one before it knew."""
    material = asked(
        message(1, "We go to Porto."), message(2, "Gladly.", role="assistant"), before="Facts:\n- by train"
    )
    assert "- by train" in material and "plan a trip" in material
    said = [json.loads(line) for line in material.partition("MESSAGES:\n")[2].splitlines()]
    assert [line["text"] for line in said] == ["We go to Porto.", "Gladly."]


def test_results_of_tools_are_not_summed_up() -> None:
    """They hold what memory knows anyway, and the answer says what came of them."""
    assert "secret list" not in asked(message(1, "Look it up."), message(2, "secret list", role="tool"))


def test_where_not_all_fits_the_oldest_messages_are_left_out() -> None:
    """Older messages are in the summary before, or are recalled."""
    material = asked(*(message(n, f"message {n}: " + "words " * 30) for n in range(1, 40)), tokens=600)
    assert "message 39:" in material and "message 1:" not in material
    assert count_tokens(material) < 900


def test_an_answer_becomes_sections_of_one_line_items() -> None:
    """Line breaks in an item would look like other items."""
    answer = {
        "facts": ["Ada likes\nPorto.", {"what": "by train", "when": "May"}],
        "open": "who books?",
        "task": " a trip ",
    }
    made = read(json.dumps(answer), "Ada likes Porto. The key is by train.")
    assert made.text == "Facts:\n- Ada likes Porto.\n- by train: May\nOpen questions:\n- who books?"
    assert made.task == "a trip"


def test_secrets_and_hidden_characters_do_not_enter_a_summary() -> None:
    """A model may repeat what it was not to keep, and the summary stands in every prompt."""
    answer = {"facts": ["the key is sk-proj-aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9", "Por\u200bto"]}
    made = read(json.dumps(answer), "Ada likes Porto. The key is by train.")
    assert "aB3dE6" not in made.text and "Porto" in made.text


@pytest.mark.parametrize("answer", ['{"facts": []}', "I would rather not.", '{"facts": [3, null]}', ""])
def test_an_answer_that_says_nothing_is_none(answer: str) -> None:
    """It must not take the place of what people said."""
    with pytest.raises(Unreadable):
        read(answer, "We go to Porto.")


TALK = ("Ich war mit Anna in Porto, der Zug hatte 40 Minuten Verspätung.", "Das Hotel war laut.")
PLAIN_TALK = ("ich backe gern brot und höre dabei radio", "meine schwester mag das nicht")


@each_row(
    ("item", "covered"),
    [
        ("I'm sorry, I cannot help with that.", TALK), ("No prior history.", TALK), ("Here is the summary:", TALK),
        ("There is nothing to summarise.", PLAIN_TALK), ("Es gibt nichts zusammenzufassen.", TALK),
        ("Aucun historique à résumer.", PLAIN_TALK), ("Lo siento, no puedo ayudar con eso.", TALK),
        ("抱歉，我无法总结这段对话。", TALK), ("要約するものはありません。", PLAIN_TALK),
        ("Die Person segelt gern und besitzt einen großen Garten.", TALK),
    ],
)  # fmt: skip
def test_a_refusal_or_a_summary_of_something_else_is_none(item: str, covered: tuple[str, ...]) -> None:
    """In any language: it would take the place of what people said."""
    with pytest.raises(Unreadable):
        read(json.dumps({"facts": [item]}), *covered)


@each_row(
    ("item", "covered"),
    [
        ("Der Zug nach Porto kam zu spät.", TALK),
        ("The train was 40 minutes late.", TALK),
        ("和安娜（Anna）一起去旅行了。", TALK),
        ("They talked about bread and the radio.", PLAIN_TALK),
        ("周末他们去爬山了，很累。", ("周末我们去爬山了", "累死了")),
        ("The bank refused and said: I cannot help with that loan.", ("the bank said: I cannot help with that loan",)),
    ],
)
def test_a_summary_may_be_in_other_words_and_in_another_language(item: str, covered: tuple[str, ...]) -> None:
    """Names, numbers or words of meaning are shared; talk without names and numbers can't show either."""
    assert item in read(json.dumps({"facts": [item]}), *covered).text


def test_a_refusal_among_the_items_is_left_out() -> None:
    made = read(json.dumps({"facts": ["Here is the summary:", "Anna was in Porto."], "open": ["none"]}), *TALK)
    assert made.text == "Facts:\n- Anna was in Porto."


def test_without_a_task_in_the_answer_nobody_has_said() -> None:
    """Then the task stays; an empty one ends it."""
    assert read('{"facts": ["x y"]}', "x y").task is None
    assert read('{"facts": ["x y"], "task": ""}', "x y").task == ""


def test_without_a_model_first_lines_of_people_stand_with_their_date_after_the_summary_before() -> None:
    """That needs no model, and what a model had found stays."""
    said = [
        message(1, "I moved to Porto.\nIt rains."),
        message(2, "Nice!", role="assistant"),
        message(3, "My cat is Miso."),
    ]
    text = summary.extract(said, "Facts:\n- Ada sails", timezone="UTC", tokens=300, count=count_tokens)
    assert text == "Facts:\n- Ada sails\nSaid:\n- 2026-05-03 I moved to Porto.\n- 2026-05-03 My cat is Miso."


def test_in_a_group_first_lines_say_whose_they_are() -> None:
    said = [message(1, "I bring bread."), message(2, "And I wine.", name="Ben", author=2)]
    text = summary.extract(said, "", timezone="UTC", tokens=300, count=count_tokens)
    assert "Ada: I bring bread." in text and "Ben: And I wine." in text


def test_where_not_all_first_lines_fit_the_newest_stay_and_the_summary_before_keeps_its_share() -> None:
    """Again and again without a model, it neither grows nor loses all that one had found."""
    before = "Facts:\n- Ada sails\n- Ada paints"
    for turn in range(5):
        said = [message(n, f"line {turn} {n} of many words about nothing at all") for n in range(1, 20)]
        before = summary.extract(said, before, timezone="UTC", tokens=150, count=count_tokens)
    assert "Ada sails" in before and "line 4 19" in before and "line 0" not in before
    assert before.index("line 4 18") < before.index("line 4 19")


_TEXTS = st.lists(st.text(max_size=400), max_size=30)


@given(facts=_TEXTS, decisions=_TEXTS, tokens=st.integers(0, 400))
def test_a_summary_never_takes_more_than_its_tokens(facts: list[str], decisions: list[str], tokens: int) -> None:
    try:
        made = read(json.dumps({"facts": facts, "decisions": decisions}), *facts, *decisions, tokens=tokens)
    except Unreadable:
        return
    assert 0 < count_tokens(made.text) <= tokens


@given(lines=_TEXTS, before=st.text(max_size=600), tokens=st.integers(0, 400))
def test_nor_does_one_of_first_lines(lines: list[str], before: str, tokens: int) -> None:
    said = [message(n, line) for n, line in enumerate(lines, start=1)]
    assert count_tokens(summary.extract(said, before, timezone="UTC", tokens=tokens, count=count_tokens)) <= tokens


# When a conversation begins anew by itself


_HOUR = 3_600_000


def at(day: int, hour: int, minute: int = 0) -> int:
    return int(datetime(2026, 3, day, hour, minute, tzinfo=UTC).timestamp() * 1000)


def test_a_conversation_goes_on_unless_the_agents_file_says_otherwise() -> None:
    """Nobody is to lose the thread over a long weekend."""
    assert not Rotation().is_due(at(1, 10), at(28, 10), "UTC")


@pytest.mark.parametrize(("hours", "due"), [(5, False), (6, True), (100, True)])
def test_it_begins_anew_after_so_long_a_silence(hours: int, due: bool) -> None:
    assert Rotation(idle_ms=6 * _HOUR).is_due(at(1, 10), at(1, 10) + hours * _HOUR, "UTC") is due


@each_row(("last", "now", "due"), [
        (at(1, 23), at(2, 1), False), (at(1, 23), at(2, 4), True), (at(2, 3, 59), at(2, 4, 1), True),
        (at(2, 4, 1), at(2, 23), False), (at(2, 5), at(3, 3), False), (at(2, 5), at(4, 3), True),
    ])  # fmt: skip
def test_it_begins_anew_with_the_first_words_after_an_hour_of_the_day(last: int, now: int, due: bool) -> None:
    """A talk past midnight goes on; the next morning's is another one."""
    assert Rotation(at=time(4)).is_due(last, now, "UTC") is due


def test_the_hour_is_that_of_the_person() -> None:
    """Four o'clock in Tokyo is seven in the evening in London."""
    rotation = Rotation(at=time(4))
    assert rotation.is_due(at(1, 18), at(1, 20), "Asia/Tokyo")
    assert not rotation.is_due(at(1, 18), at(1, 20), "UTC")


def test_a_first_message_begins_nothing_anew() -> None:
    assert not Rotation(idle_ms=1, at=time(4)).is_due(None, at(1, 10), "UTC")
