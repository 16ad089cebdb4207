"""The shares of a request, and what is learned of a server's own count."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agents.budget import (
    LEAST_ANSWER,
    Allotment,
    Gauge,
    Portion,
    affordable,
    allot,
    background,
    count_tokens,
    lighter,
    message_size,
    shares,
    shortened,
    size,
    tools_size,
)
from agents.llm import ChatMessage, Completion, Request, ToolSpec, Usage
from tests.kit.tables import each_row

tokens = st.integers(0, 50_000)
parts = st.lists(
    st.builds(Portion, name=st.text(max_size=3), wanted=tokens, floor=tokens, share=st.floats(0, 1)),
    max_size=8,
    unique_by=lambda part: part.name,
)


@given(st.integers(0, 200_000), parts)
def test_parts_never_come_to_more_than_the_room(room: int, wanted: list[Portion]) -> None:
    """A prompt that is too long gets no answer at all."""
    given_to = allot(room, wanted)
    assert sum(given_to.values()) <= room
    assert all(0 <= given_to[part.name] <= part.wanted for part in wanted)


@given(st.integers(0, 200_000), parts)
def test_what_has_priority_keeps_its_floor(room: int, wanted: list[Portion]) -> None:
    given_to, left = allot(room, wanted), room
    for part in wanted:
        floor = min(part.floor, part.wanted)
        assert given_to[part.name] >= min(floor, left)
        left = max(0, left - floor)


@given(st.integers(0, 200_000), parts, st.integers(0, 10_000))
def test_a_larger_room_leaves_no_floor_smaller(room: int, wanted: list[Portion], more: int) -> None:
    small, large = allot(room, wanted), allot(room + more, wanted)
    assert sum(large.values()) >= sum(small.values())


wanted_shares = st.builds(
    Allotment, answer=st.integers(1, 50_000), tools=tokens, snapshot=tokens, newer=tokens, recall=tokens, window=tokens
)


@given(st.integers(1_000, 200_000), wanted_shares, st.integers(0, 400))
def test_a_chat_fits_with_its_answer(room: int, wanted: Allotment, system: int) -> None:
    """Every part is at most what is configured, and the answer keeps its floor."""
    found = shares(room, wanted, system=system)
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    assert system + sum(values.values()) <= room
    assert all(value <= getattr(wanted, name) for name, value in values.items())
    assert found.answer >= min(LEAST_ANSWER, wanted.answer)
    assert found.window >= min(wanted.window, room // 10)


@pytest.mark.parametrize("context", [2_048, 4_096, 8_192, 128_000])
def test_as_configured_by_default_each_part_has_something(context: int) -> None:
    """Nothing is starved where it is tight, and nothing is taken away where it is not."""
    usual = Allotment(answer=4_096, tools=900, snapshot=2_000, newer=1_500, recall=1_500, window=32_000)
    found = shares(context, usual, system=250)
    assert min(found.answer, found.tools, found.snapshot, found.recall, found.window) >= 150
    assert context < 128_000 or found == usual


@given(st.integers(1_500, 200_000), st.integers(0, 900), st.integers(1, 8_000))
def test_a_background_request_fits_with_its_answer(room: int, instructions: int, answer: int) -> None:
    material = background(room, instructions=instructions, answer=answer)
    assert 0 < material <= room - instructions - min(answer, LEAST_ANSWER)


def test_the_estimate_follows_what_the_server_counts() -> None:
    """A server that counts half as much again leaves two thirds of the room."""
    gauge = Gauge([10_000])
    first = gauge.room()
    gauge.counted(REQUEST, completion(int(size(REQUEST, count_tokens) * 1.5)))
    assert gauge.room() == pytest.approx(first / 1.5, rel=0.01)
    for _ in range(8):
        gauge.counted(REQUEST, completion(size(REQUEST, count_tokens)))
    assert gauge.room() == first


@given(st.lists(st.integers(0, 10_000_000), max_size=12), st.booleans())
def test_no_report_makes_the_room_absurd(reported: list[int], estimated: bool) -> None:
    """Servers report nonsense: nothing, what their cache did not hold, or a sum of all calls."""
    gauge = Gauge([10_000])
    for count in reported:
        gauge.counted(REQUEST, completion(count, estimated=estimated))
    assert 3_200 <= gauge.room() <= 11_000
    assert not estimated or gauge.room() == Gauge([10_000]).room()


def test_a_context_that_the_server_names_is_believed() -> None:
    for said in (
        "This model's maximum context length is 2048 tokens. However, you requested 3000 tokens.",
        "Requested tokens (3000) exceed context window of 2048",
        "the request exceeds the available context size (2048 tokens), try increasing it",
    ):
        gauge = Gauge([128_000])
        gauge.overflowed(REQUEST, gauge.room(), said)
        assert gauge.room() < 2_048, said


@given(st.integers(2_048, 200_000), st.integers(0, 12))
def test_each_refusal_leaves_a_smaller_room_that_the_next_request_fits(context: int, refusals: int) -> None:
    """Whatever the reason: a count that differs, or a context that is not what was configured."""
    gauge = Gauge([context])
    for _ in range(refusals):
        room = gauge.room(refused=True)
        sent = replace(REQUEST, messages=(ChatMessage(role="user", content="word " * min(room // 2, 4_000)),))
        gauge.overflowed(sent, room, "too long")
        assert gauge.room(refused=True) < max(room, 1_024)
    # A guess grows back, as no server has said so.
    for _ in range(120):
        gauge.counted(REQUEST, completion(size(REQUEST, count_tokens)))
    assert gauge.room() == Gauge([context]).room()


def test_a_refusal_by_a_smaller_model_of_the_chain_says_nothing_of_the_first() -> None:
    """The first was down; when it is back it reads as much as before."""
    gauge = Gauge([128_000, 4_096])
    first = gauge.room()
    gauge.overflowed(REQUEST, first, "maximum context length is 4096 tokens")
    assert gauge.room() == first and gauge.room(refused=True) < 4_096


def cut_at(reads: int, sent: Sequence[int], *, place: int = 0) -> tuple[Gauge, list[Any]]:
    """Returns the gauge of two models, told of requests of these sizes, of which one's server counts at most `reads`."""
    gauge = Gauge([32_000, 32_000])
    with capture_logs() as lines:
        for tokens in sent:
            request = Request(messages=(ChatMessage(role="user", content="word " * tokens),))
            counted = min(reads, size(request, count_tokens))
            gauge.counted(request, replace(completion(counted), provider="scripted", model="model:8b", place=place))
    return gauge, lines


def test_a_server_that_cuts_requests_without_a_word_is_found_out() -> None:
    """Ollama drops what it is told first: the bot's own rules and all that is remembered."""
    gauge, lines = cut_at(4_096, range(1_000, 9_000, 250))
    assert gauge.room() <= 4_096
    (line,) = lines
    assert (line["event"], line["reads"]) == ("model.cuts_requests", 4_096)
    assert "OLLAMA_CONTEXT_LENGTH" in line["fix"] and "context to 4096" in line["fix"]
    for _ in range(50):
        gauge.counted(REQUEST, completion(size(REQUEST, count_tokens)))
    assert gauge.room() <= 4_096, "it does not grow back"


@pytest.mark.parametrize(
    "counted",
    [
        pytest.param(lambda sent: sent, id="all"),
        pytest.param(lambda sent: sent * 6 // 10, id="a better tokenizer"),
        pytest.param(lambda sent: 40 + sent % 300, id="what the cache did not hold"),
    ],
)
def test_a_server_that_counts_otherwise_is_not_suspected(counted: Callable[[int], int]) -> None:
    """A context that is too small by mistake costs memory for as long as the process runs."""
    gauge = Gauge([32_000])
    with capture_logs() as lines:
        for sent in range(1_000, 9_000, 250):
            request = Request(messages=(ChatMessage(role="user", content="word " * sent),))
            gauge.counted(request, replace(completion(counted(sent)), provider="scripted", model="model"))
    assert lines == [] and gauge.room() >= 31_000


def talk(turns: int, tokens: int, counted: Callable[[int, int, int], Usage]) -> tuple[Gauge, list[Any]]:
    """Returns a gauge that was told of a conversation growing by messages of so many tokens.

    `counted` returns a server's report from the number of the turn, the tokens sent and those that are new.
    """
    gauge = Gauge([64_000])
    messages = [ChatMessage(role="system", content="rule " * 2_000)]
    with capture_logs() as lines:
        for turn in range(turns):
            new = size(Request(messages=tuple(messages)), count_tokens) if turn == 0 else 0
            messages.append(
                ChatMessage(role="user" if turn % 2 else "assistant", content=f"{turn} " + "word " * tokens)
            )
            request = Request(messages=tuple(messages))
            new += message_size(messages[-1], count_tokens)
            report = counted(turn, size(request, count_tokens), new)
            answer = Completion(text="", model="model", provider="scripted", usage=report)
            gauge.counted(request, answer)
    return gauge, lines


@pytest.mark.parametrize("turns", [4, 20])
@pytest.mark.parametrize("tokens", [30, 400, 1_200, 4_000])
@pytest.mark.parametrize(
    "counted",
    [
        pytest.param(lambda turn, sent, new: Usage(input_tokens=new), id="what its cache did not hold"),
        pytest.param(lambda turn, sent, new: Usage(input_tokens=new if turn else sent), id="all at first"),
        pytest.param(lambda turn, sent, new: Usage(input_tokens=new - new % 64 + 64), id="in blocks"),
        pytest.param(lambda turn, sent, new: Usage(input_tokens=1_100, cached_tokens=sent - 1_100), id="both apart"),
        pytest.param(lambda turn, sent, new: Usage(input_tokens=1_500 if turn else sent), id="falling"),
        pytest.param(lambda turn, sent, new: Usage(input_tokens=min(sent, 5_000 - 100 * turn)), id="falling on"),
    ],
)
def test_a_server_that_counts_what_is_new_is_not_suspected(
    counted: Callable[[int, int, int], Usage], tokens: int, turns: int
) -> None:
    """Its numbers stand still or fall while the conversation grows, as those of a server that cuts do."""
    gauge, lines = talk(turns, tokens, counted)
    assert lines == [] and gauge.room() >= 56_000


@pytest.mark.parametrize("tokens", [30, 400, 1_200])
def test_a_growing_conversation_that_is_cut_is_found_out(tokens: int) -> None:
    """Its new part alone is not what the server counts."""
    gauge, lines = talk(7_000 // tokens, tokens, lambda turn, sent, new: Usage(input_tokens=min(4_096, sent)))
    assert [line["reads"] for line in lines] == [4_096] and gauge.room() <= 4_096


def test_another_model_than_the_one_that_cuts_keeps_its_context() -> None:
    """A chain has one gauge, and two servers may have models of one name."""
    gauge, lines = cut_at(4_096, range(1_000, 9_000, 250), place=1)
    assert len(lines) == 1 and gauge.room() >= 31_000 and gauge.room(refused=True) <= 4_096


def test_what_one_server_counts_says_nothing_of_a_model_of_that_name_elsewhere() -> None:
    gauge = Gauge([10_000, 10_000])
    first = gauge.room()
    for place, factor in ((0, 1), (1, 2), (0, 1)):
        gauge.counted(REQUEST, replace(completion(size(REQUEST, count_tokens) * factor), place=place))
    assert gauge.room() == first


def test_a_shortened_text_has_head_and_tail() -> None:
    """The end often says what came of it."""
    lines = [f"line {number}" for number in range(1_000)]
    text = shortened("\n".join(lines), 200, count_tokens)
    assert text.startswith("line 0\nline 1\n") and text.endswith("\nline 999")
    assert re.search(r"\n\[… \d+ characters left out …\]\n", text)
    assert 190 <= count_tokens(text) <= 200


@given(st.text(max_size=2_000), st.integers(0, 300))
def test_a_shortened_text_keeps_its_budget_and_its_ends(text: str, budget: int) -> None:
    shown = shortened(text, budget, count_tokens)
    assert count_tokens(shown) <= budget
    assert shown == text if count_tokens(text) <= budget else shown == "" or "characters left out" in shown


@given(st.lists(st.integers(0, 400), max_size=6), st.integers(0, 3_000))
def test_results_of_tools_get_lighter_and_none_goes(lengths: list[int], budget: int) -> None:
    """A result without its call, or a call without its result, would be refused."""
    traffic = [ChatMessage(role="tool", content="word " * length, tool_call_id="c") for length in lengths]
    light = lighter(traffic, budget, count_tokens)
    assert [message.tool_call_id for message in light] == [message.tool_call_id for message in traffic]
    before, after = (sum(message_size(message, count_tokens) for message in some) for some in (traffic, light))
    assert after <= max(budget, 52 * len(traffic)) and after <= before


def test_as_many_tools_are_offered_as_fit() -> None:
    tools = [ToolSpec(name=f"tool_{n}", description="Does something.", parameters={}) for n in range(5)]
    assert affordable(tools, 1_000_000, count_tokens) == tuple(tools)
    assert affordable(tools, tools_size(tools[:3], count_tokens), count_tokens) == tuple(tools[:3])
    assert affordable(tools, 0, count_tokens) == ()
    assert tools_size(tools, count_tokens) > count_tokens(json.dumps([tool.description for tool in tools]))


REQUEST = Request(messages=(ChatMessage(role="user", content="what is it that you would like to know? " * 100),))


def completion(read: int, *, estimated: bool = False) -> Completion:
    return Completion(text="yes", model="m", provider="p", usage=Usage(input_tokens=read, estimated=estimated))


# Tests of the token estimate: its shape for any text, and its nearness to real counts


# Any code point, lone surrogates included: chat platforms have sent them.
any_text = st.text(st.characters())


@given(any_text, any_text)
def test_an_estimate_never_falls_when_text_is_added_at_either_end(text: str, more: str) -> None:
    """Budgets are filled piece by piece; a falling estimate would let a piece in that does not fit."""
    assert count_tokens(text + more) >= count_tokens(text)
    assert count_tokens(more + text) >= count_tokens(text)


@given(any_text, any_text)
def test_an_estimate_of_parts_is_never_below_the_estimate_of_the_whole(text: str, more: str) -> None:
    """Callers add up estimates of pieces and send the joined text."""
    assert count_tokens(text) + count_tokens(more) >= count_tokens(text + more)


@given(any_text)
def test_only_the_empty_text_costs_nothing(text: str) -> None:
    """A free non-empty text could be packed into a prompt without end."""
    assert (count_tokens(text) == 0) == (text == "")


# The true counts are o200k_base's, taken once by hand.
@each_row(
    ("text", "true_count"),
    [
        ("My sister Ana moved to Lisbon last spring, and we still call each other every Sunday evening.", 19),
        ("Meine Schwester ist im Frühling nach Lissabon gezogen, und wir telefonieren jeden Sonntag.", 19),
        ("Моя сестра весной переехала в Лиссабон, и мы до сих пор созваниваемся каждое воскресенье.", 29),
        ("我妹妹去年春天搬到了里斯本，我们每个星期天晚上还是会打电话。", 21),
        ("妹は去年の春にリスボンへ引っ越しましたが、今でも毎週日曜日の夜に電話をしています。", 30),
        ("여동생은 작년 봄에 리스본으로 이사했지만 우리는 아직도 일요일마다 통화해요.", 28),
        ("أختي انتقلت إلى لشبونة في الربيع الماضي وما زلنا نتصل ببعضنا كل يوم أحد.", 27),
        ("मेरी बहन पिछले साल लिस्बन चली गई और हम अब भी हर रविवार को बात करते हैं।", 23),
        ('for row in rows:\n    total += row.price * 1.19  # with tax\nprint(f"{total:.2f}")\n', 28),
    ],
)
def test_an_estimate_is_near_the_count_of_a_real_tokenizer(text: str, true_count: int) -> None:
    """The window and the recall budget are cut by this number, so every script must come out about right."""
    assert 0.8 * true_count <= count_tokens(text) <= 1.8 * true_count


def test_chinese_is_dearer_than_english_of_the_same_length() -> None:
    """Four characters to a token, the usual rule, would overflow the window of a Chinese chat fourfold."""
    assert count_tokens("我今天想去图书馆看书" * 10) >= 3 * count_tokens("I go away " * 10)


@each_row("unit", ["word ", "文", "🐟", "\ud800", "é"])
def test_a_very_long_text_costs_in_proportion_to_its_length(unit: str) -> None:
    """A pasted megabyte must be counted whole, neither sampled nor capped."""
    assert count_tokens(unit * 200_000) == pytest.approx(count_tokens(unit * 2_000) * 100, rel=0.01)
