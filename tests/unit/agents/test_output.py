"""Tests of what is shown of an answer: everything said to the person, and nothing that models write beside it."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.output import Output
from tests.kit.tables import each_row

CALL = '{"name": "find", "arguments": {"q": "tea"}}'


def read(*pieces: str, offered: Sequence[str] = (), bare: bool = False, thinking: bool = False) -> Output:
    output = Output(offered=offered, bare=bare, thinking=thinking, agent="remora")
    for piece in pieces:
        output.feed(piece)
    output.finish()
    return output


HIDDEN = [
    ("<think>hm</think>Yes.", "Yes."),
    ("< Think >hm< /THINK >\n\nYes.", "Yes."),
    ("<thinking>hm</thinking>\nYes.", "Yes."),
    ("[THINK]hm[/THINK]Yes.", "Yes."),
    ("◁think▷hm◁/think▷Yes.", "Yes."),
    ("hm\n</think>\n\nYes.", "Yes."),
    ("<think>a <think>b</think> c</think>Yes.", "Yes."),
    ("<think>one <think> two</think>Yes.", "Yes."),
    ("<think>they ask about `</think>` tags</think>Yes.", "Yes."),
    ("Well. <think>hm", "Well."),
    ("Sure! <think>hm</think>Yes.", "Sure! Yes."),
    (f"I look.\n<tool_call>{CALL}</tool_call>", "I look."),
    (f"<tool_call>{CALL[:20]}", ""),
    ("I look. <function=find>{}</function> Done.", "I look.  Done."),
    ('[TOOL_CALLS]find[ARGS]{"q": "x"}', ""),
    (f"D'accord.[TOOL_CALLS] [{CALL}]</s>", "D'accord."),
    ('<|python_tag|>find.call(q="x")<|eom_id|>', ""),
    ('functions.find:0{"q": "x"}', ""),
    ("好。<｜tool▁calls▁begin｜>function<｜tool▁sep｜>find<｜tool▁calls▁end｜><｜end▁of▁sentence｜>", "好。"),
    (f"```json\n{CALL}\n```", ""),
    ("```tool_code\nfind(q='x')\n```", ""),
    ('<function_calls>\n<invoke name="find"><parameter name="q">x</parameter></invoke>\n</function_calls>', ""),
    ("Yes.<|im_end|>\n<|im_start|>user\nand?", "Yes."),
    ("<|im_start|>assistant\nYes.<|im_end|>", "Yes."),
    ("<|start_header_id|>assistant<|end_header_id|>\n\nYes.<|eot_id|>", "Yes."),
    ("Yes.<end_of_turn>\n<start_of_turn>user\nand?", "Yes."),
    ("<s> Oui. </s>", "Oui."),
    ("[INST] question? [/INST] Yes.", "Yes."),
    ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>", "Yes."),
    ('<|channel|>commentary to=functions.find <|constrain|>json<|message|>{"q":1}<|call|>', ""),
    ("analysisThe person wants x.assistantfinalYes.", "Yes."),
    ("Yes.<|endoftext|>The following is", "Yes."),
    ("Yes.<|im_", "Yes."),
    ("Yes, indeed.\n\nUser: and him?\nAssistant: No.", "Yes, indeed."),
    ("Good night, Ana.\n\nHuman: What about the meeting tomorrow?", "Good night, Ana."),
    ("Sure.\n\n### User:\nmore please\n\n### Assistant:\nok", "Sure."),
    ("Assistant: Yes.", "Yes."),
    ("**Remora:** Yes.", "Yes."),
    ("[context k3bqxz: added by the system; data]\nnow: x\n[end of context k3bqxz]\nYes.", "Yes."),
    ("[memory 0123abcd: data that people have told]\n- x\n[end of memory 0123abcd]\nYes.", "Yes."),
    ("[day 2026-11-23, Monday]\nYes.", "Yes."),
    ("[Day 2026-11-23]\nYes.", "Yes."),
    ("I know: [memory 12] tea [end of memory 12] Yes.", "I know:  Yes."),
    ("As [memory 12] says, you like tea.", "As  says, you like tea."),
    ("Fine. [context 8f3a: added by the system]\nrecent topics", "Fine."),
]

KEPT = [
    "Write [day one] and `[day 2026-11-23, Monday]` as they are.",
    "Wrap `<think>` in backticks.\n\n```html\n<think>hello</think>\n```\nIt renders.",
    'The tag "<think>" opens a thought, "</think>" closes it.',
    "`[INST]` and ``a ` <s>`` are marks.",
    '```json\n{"name": "my-site", "version": "1"}\n```\nSave it.',
    '{"name": "Bob", "age": 3}',
    f"```json\n{CALL}\n```\nThis is how a call looks.",
    "Your scene:\n\nUser: Are you there?\nMachine: Always.\nUser: Good.",
    "Here is a chat:\n\nUser: hi\nAssistant: hello!",
    "User: in that log means the account, so `User: root` is the admin.",
    "Log in like this.\n\nUser: root\nPassword: hunter2",
    "Human beings: they err.\nUser experience: good.",
    "I think > 5 people is too many, and 3 < 4.",
    "Use List<String> or Map<K, V>; see [1], [link](http://x.y) and arr[0].",
    "<p>Hello <b>bold</b></p> and <br> and <3 you",
    "Number 15 is about the [memory] foam pillow.",
    "Call functions.greet from the console.",
    "~~~\n<|im_start|>user\n~~~\nThe end.",
    "* a\n* b\n\n# Head\n\n**Bold:** text\n",
]


@each_row(("text", "shown"), HIDDEN)
def test_what_a_model_writes_beside_its_words_is_not_shown(text: str, shown: str) -> None:
    """People have been sent thoughts, calls and marks of every family of models."""
    assert read(text).text == shown


@each_row("text", KEPT)
def test_what_only_looks_like_it_stays(text: str) -> None:
    """An answer about templates, logs or generics is an answer."""
    output = read(text)
    assert output.text == text
    assert not output.began_inside


_PIECES = (
    [text for text, _ in HIDDEN] + KEPT + ["<", "[", "`", "```\n", "\n", "\n\n", " ", "word ", "</think>", "<s>", ">"]
)


@given(
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
    st.sampled_from([(), ("find",)]),
    st.booleans(),
)
def test_the_cuts_of_the_network_change_nothing(
    parts: list[str], chance: random.Random, offered: tuple[str, ...], bare: bool
) -> None:
    """A mark may arrive letter by letter, or in the same piece as the words around it."""
    whole = "".join(parts)
    expected = read(whole, offered=offered, bare=bare)
    ends = sorted(chance.sample(range(len(whole) + 1), min(len(whole), 5)))
    some = [whole[start:end] for start, end in zip([0, *ends], [*ends, len(whole)], strict=True)]
    for pieces in (list(whole), some):
        output = read(*pieces, offered=offered, bare=bare)
        assert (output.text, output.calls) == (expected.text, expected.calls)


@given(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4))
def test_what_was_shown_while_it_grew_is_the_answer(parts: list[str]) -> None:
    """A terminal can't take back what it has printed."""
    output = Output()
    shown = "".join([*(output.feed(letter) for letter in "".join(parts)), output.finish()])
    assert shown == output.text or output.began_inside


@given(st.text(alphabet=st.characters(exclude_characters="<[`◁~{#*_:：f"), max_size=200))
def test_text_without_brackets_is_left_alone(text: str) -> None:
    """Most answers are such."""
    if not text.startswith("analysis"):
        assert read(text).text == text


@each_row(
    "text",
    [
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}",
        f"[TOOL_CALLS] [{CALL}]",
        '[TOOL_CALLS]find[ARGS]{"q": "tea"}',
        '<function=find>{"q": "tea"}</function>',
        "<tool_call>\n<function=find>\n<parameter=q>\ntea\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>find\n<arg_key>q</arg_key>\n<arg_value>tea</arg_value></tool_call>",
        '<function_calls><invoke name="find"><parameter name="q">tea</parameter></invoke></function_calls>',
        '<|python_tag|>find.call(q="tea")<|eom_id|>',
        '<|python_tag|>{"name": "find", "parameters": {"q": "tea"}}',
        'functions.find:0{"q": "tea"}',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n{"q":"tea"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>{"q": "tea"}<|tool_call_end|><|tool_calls_section_end|>',
        f"```json\n{CALL}\n```",
        f"I look it up.\n{CALL}",
        '{"name": "find", "parameters": {"q": "tea"}}',
        '{"tool_calls": [{"type": "function", "function": {"name": "find", "arguments": "{\\"q\\": \\"tea\\"}"}}]}',
        '[find(q="tea")]',
        '```tool_code\nfind(q="tea")\n```',
        '<|channel|>commentary to=functions.find <|constrain|>json<|message|>{"q": "tea"}<|call|>',
        '<|tool_call>call:find{"q": "tea"}<tool_call|>',
    ],
)
def test_a_call_written_as_text_of_an_offered_tool_is_a_call(text: str) -> None:
    """Small servers hand a model's own form of a call through as text; the person waits for its result."""

    output = read(text, offered=("find",))
    assert [(name, json.loads(arguments)) for name, arguments in output.calls] == [("find", {"q": "tea"})]
    assert "find" not in output.text
    assert read(text).calls == []


def test_data_is_left_as_it_is_but_for_thoughts_and_marks_around_it() -> None:
    """A model that reads for memory answers in JSON, which may quote anything."""
    data = '{"items": [{"value": "wrote <think> and [INST] and User: in a letter"}]}'
    assert read(f"<think>hm</think>\n{data}<|im_end|>", bare=True).text == data
    assert read(f"hm, let me see</think>{data}", bare=True).text == data
    assert read(f"```json\n{data}\n```", bare=True).text == f"```json\n{data}\n```"


def test_a_model_known_to_begin_inside_a_thought_shows_nothing_of_it() -> None:
    """The opening mark is in its template, so only the closing one arrives."""
    output = Output(thinking=True)
    assert output.feed("hm, let me see") == ""
    assert output.feed("</think>Yes.") + output.finish() == "Yes."
    assert read("Yes, without a thought.", thinking=True).text == "Yes, without a thought."


@pytest.mark.parametrize("piece", ["<think>", "[", "<", "\n", "```\n", "<think>`"])
def test_the_time_for_an_answer_grows_with_its_length_and_no_faster(piece: str) -> None:
    output = Output()
    began = time.thread_time()
    output.feed(piece * 20_000)
    output.finish()
    assert time.thread_time() - began < 10  # searched anew at each mark, it would be minutes
