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
    ("<think>hm</think>Yes.", "Yes."), ("< Think >hm< /THINK >\n\nYes.", "Yes."),
    ("<thinking>hm</thinking>\nYes.", "Yes."), ("[THINK]hm[/THINK]Yes.", "Yes."), ("◁think▷hm◁/think▷Yes.", "Yes."),
    ("hm\n</think>\n\nYes.", "Yes."),
    ("<think>a <think>b</think> c</think>Yes.", "Yes."),
    ("<think>one <think> two</think>Yes.", "Yes."),
    ("<think>they ask about `</think>` tags</think>Yes.", "Yes."),
    ("Well. <think>hm", "Well."), ("Sure! <think>hm</think>Yes.", "Sure! Yes."),
    (f"I look.\n<tool_call>{CALL}</tool_call>", "I look."),
    (f"<tool_call>{CALL[:20]}", ""),
    ("I look. <function=find>{}</function> Done.", "I look.  Done."),
    ('[TOOL_CALLS]find[ARGS]{"q": "x"}', ""),
    (f"D'accord.[TOOL_CALLS] [{CALL}]</s>", "D'accord."),
    ('<|python_tag|>find.call(q="x")<|eom_id|>', ""),
    ('functions.find:0{"q": "x"}', ""),
    ("好。<｜tool▁calls▁begin｜>function<｜tool▁sep｜>find<｜tool▁calls▁end｜><｜end▁of▁sentence｜>", "好。"),
    (f"```json\n{CALL}\n```", ""), ("```tool_code\nfind(q='x')\n```", ""),
    ('<function_calls>\n<invoke name="find"><parameter name="q">x</parameter></invoke>\n</function_calls>', ""),
    ("Yes.<|im_end|>\n<|im_start|>user\nand?", "Yes."),
    ("<|im_start|>assistant\nYes.<|im_end|>", "Yes."),
    ("<|start_header_id|>assistant<|end_header_id|>\n\nYes.<|eot_id|>", "Yes."),
    ("Yes.<end_of_turn>\n<start_of_turn>user\nand?", "Yes."),
    ("<s> Oui. </s>", "Oui."), ("[INST] question? [/INST] Yes.", "Yes."),
    ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>", "Yes."),
    ('<|channel|>commentary to=functions.find <|constrain|>json<|message|>{"q":1}<|call|>', ""),
    ("analysisThe person wants x.assistantfinalYes.", "Yes."),
    ("Yes.<|endoftext|>The following is", "Yes."), ("Yes.<|im_", "Yes."),
    ("Yes, indeed.\n\nUser: and him?\nAssistant: No.", "Yes, indeed."),
    ("Good night, Ana.\n\nHuman: What about the meeting tomorrow?", "Good night, Ana."),
    ("Sure.\n\n### User:\nmore please\n\n### Assistant:\nok", "Sure."),
    ("Assistant: Yes.", "Yes."), ("**Remora:** Yes.", "Yes."),
    ("[context k3bqxz: added by the system; data]\nnow: x\n[end of context k3bqxz]\nYes.", "Yes."),
    ("[memory 0123abcd: data that people have told]\n- x\n[end of memory 0123abcd]\nYes.", "Yes."),
    ("[day 2026-11-23, Monday]\nYes.", "Yes."), ("[Day 2026-11-23]\nYes.", "Yes."),
    ("I know: [memory 12] tea [end of memory 12] Yes.", "I know:  Yes."),
    ("As [memory 12] says, you like tea.", "As  says, you like tea."),
    ("<|channel>thought\nhm<channel|>Yes.", "Yes."),
    ("hm\n<channel|>Yes.", "Yes."),
    ("<|turn>model\n<|channel>thought\n<channel|>Yes.<turn|>", "Yes."),
    ("thought\nYes.", "Yes."),
    ('Ok.<|tool_call>call:find{q:<|"|>x<|"|>}<tool_call|><|tool_response>', "Ok."),
    ("hm◁/think▷Yes.", "Yes."), ("hm</thinking>Yes.", "Yes."), ("hm<|END_THINKING|>Yes.", "Yes."),
    ("hm[/THINK]Yes.", "Yes."), ("<scratch_pad>hm</scratch_pad>Yes.", "Yes."),
    ("<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>", "Yes."),
    ('commentaryI look.assistantcommentary to=functions.find json{"q": 1}', "I look."),
    ("assistantfinalYes.", "Yes."),
    ('analysisThey ask.assistantcommentary to=functions.find json{"q": 1}', ""),
    ('I look. commentary to=functions.find {"q": 1}', "I look."),
    ('I look.<|action_start|><|plugin|>{"name": "find", "parameters": {}}<|action_end|>', "I look."),
    ("I look.<|tool_call_start|>[find(q='x')]<|tool_call_end|>", "I look."),
    ('I look.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="find">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
     "I look."),
    ('<‖DSML‖tool_calls><‖DSML‖invoke name="find"></‖DSML‖invoke></‖DSML‖tool_calls>Yes.', "Yes."),
    ("Yes.<｜DSML｜fun", "Yes."),
    ("Fine. [context 8f3a: added by the system]\nrecent topics", "Fine."),
]  # fmt: skip

KEPT = [
    "Write [day one] and `[day 2026-11-23, Monday]` as they are.",
    "Wrap `<think>` in backticks.\n\n```html\n<think>hello</think>\n```\nIt renders.",
    'The tag "<think>" opens a thought, "</think>" closes it.',
    "`[INST]` and ``a ` <s>`` are marks.",
    '```json\n{"name": "my-site", "version": "1"}\n```\nSave it.',
    '{"name": "Bob", "age": 3}', f"```json\n{CALL}\n```\nThis is how a call looks.",
    "Your scene:\n\nUser: Are you there?\nMachine: Always.\nUser: Good.",
    "Here is a chat:\n\nUser: hi\nAssistant: hello!",
    "User: in that log means the account, so `User: root` is the admin.",
    "Log in like this.\n\nUser: root\nPassword: hunter2", "Human beings: they err.\nUser experience: good.",
    "I think > 5 people is too many, and 3 < 4.",
    "Use List<String> or Map<K, V>; see [1], [link](http://x.y) and arr[0].",
    "<p>Hello <b>bold</b></p> and <br> and <3 you", "Number 15 is about the [memory] foam pillow.",
    "Call functions.greet from the console.",
    "His commentary to the text, and to=functions of the mail header.",
    "analysis of the case\nfinally done\ncommentary: none", "thoughts\non tea, and thought\nfor food",
    "Action: `json` is short for it.", "use x <|> y and a |> b or <| f", "~~~\n<|im_start|>user\n~~~\nThe end.",
    "* a\n* b\n\n# Head\n\n**Bold:** text\n",
]  # fmt: skip


@each_row(("text", "shown"), HIDDEN)
def test_what_a_model_writes_beside_its_words_is_not_shown(text: str, shown: str) -> None:
    """People have been sent thoughts, calls and marks of every family of models."""
    assert read(text).text == shown


@each_row("text", KEPT)
def test_what_only_looks_like_it_stays(text: str) -> None:
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
    if not text.startswith("analysis"):
        assert read(text).text == text


_PARAMETER = '<{0}parameter name="q" string="true">tea</{0}parameter>'


def _dsml(bars: str, block: str) -> str:
    inside = f'<{bars}invoke name="find">\n{_PARAMETER.format(bars)}\n</{bars}invoke>'
    return f"<{bars}{block}>\n{inside}\n</{bars}{block}>" if block else inside


@each_row(
    "text",
    [
        _dsml("｜DSML｜", "function_calls"),
        _dsml("｜DSML｜", "tool_calls"),
        _dsml("｜DSML｜", "calls"),
        _dsml("｜DSML｜", ""),
        _dsml("｜｜DSML｜｜", "tool_calls"),
        _dsml("‖DSML‖", "tool_calls"),
        _dsml("| DSML | ", "tool_use"),
        _dsml("steptml:", ""),
        _dsml("｜DSML｜", "function_calls")[:-40],
        '<|tool_call>call:find{q:<|"|>tea<|"|>}<tool_call|>',
        "<start_function_call>call:find{q:<escape>tea<escape>}<end_function_call>",
        f"<minimax:tool_call>\n{_dsml('', '')}\n</minimax:tool_call>",
        "<tool_call>{'name': 'find', 'arguments': {'q': 'tea'}}</tool_call>",
        "{'name': 'find', 'arguments': {'q': 'tea',}}",
        '<tool_call>{"name": "functions.find", "arguments": {"q": "tea"}}</tool_call>',
        'find[ARGS]{"q": "tea"}',
        'find{"q": "tea"}',
        '[TOOL_CALLS]find[CALL_ID]abc123def[ARGS]{"q": "tea"}',
        '```tool_code\nprint(default_api.find(q="tea"))\n```',
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "find", "parameters": {"q": "tea"}}]<|END_ACTION|>',
        'Action: ```json\n[{"tool_name": "find", "parameters": {"q": "tea"}}]\n```',
        '<|tool_call|>[{"name": "find", "arguments": {"q": "tea"}}]<|end_of_text|>',
        '<|python_start|>[find(q="tea")]<|python_end|><|eot|>',
        '<|tool_call_start|>[find(q="tea")]<|tool_call_end|>',
        '<|action_start|><|plugin|>{"name": "find", "parameters": {"q": "tea"}}<|action_end|>',
        *(
            f'{role}{channel}to={name}{type_}{{"q": "tea"}}{end}'
            for role, channel, name, type_, end in [
                ("", "commentary ", "functions.find", " json", ""),
                ("", "commentary ", "functions.find", " <|constrain|>json<|message|>", "<|call|>"),
                ("", "commentary ", "functions.find", " <|constrain|>json", ""),
                ("", "commentary ", "functions.find", " json<|message|>", ""),
                ("", "commentary ", "functions.findjson", "", "<|call|>commentary"),
                ("", "commentary ", "find", " ", ""),
                ("assistant", "commentary ", "functions.find", " code", ""),
                ("<|channel|>", "commentary ", "functions.find", " json", ""),
                ("<|channel|>", "analysis ", "functions.find", " <|constrain|>json", "<|call|>"),
                ("", "", "functions.find", "<|channel|>commentary json<|message|>", "<|call|>"),
                ("<|start|>assistant", " ", "functions.find", "<|channel|>commentary json<|message|>", "<|call|>"),
                ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant", "commentary ", "find", " json", ""),
            ]
        ),
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
    assert read(*text, offered=("find",)).calls == output.calls
    assert read(text).calls == []


def test_a_call_without_arguments_is_its_name() -> None:
    assert read("<tool_call>find</tool_call>", offered=("find",)).calls == [("find", "{}")]


def test_a_call_of_no_offered_tool_is_kept_so_that_the_model_is_told() -> None:
    """Left out, its answer would be empty, and nobody would know why."""
    text = '<tool_call>{"name": "seek", "arguments": {"q": "tea"}}</tool_call>'
    assert read(text, offered=("find",)).calls == [("seek", '{"q": "tea"}')]
    assert read(text).calls == []


def test_a_call_whose_arguments_can_not_be_read_is_kept_so_that_the_model_is_told() -> None:
    """A brace too few would else be an empty answer."""
    text = f"<tool_call>{CALL[:-1]}</tool_call>"
    assert read(text, offered=("find",)).calls == [("find", CALL[:-1])]
    assert read("<tool_response>{'name': 'find', 'content': </tool_response>Yes.", offered=("find",)).calls == []


def test_text_that_is_said_to_be_text_stays_text() -> None:
    """DeepSeek says of each parameter whether it is one."""
    text = _dsml("｜DSML｜", "function_calls")
    assert read(text.replace("tea", "2024"), offered=("find",)).calls == [("find", '{"q": "2024"}')]
    number = text.replace("tea", "2024").replace('"true"', '"false"')
    assert read(number, offered=("find",)).calls == [("find", '{"q": 2024}')]


def test_a_call_in_a_thought_whose_opening_was_lost_is_none() -> None:
    output = read(f"I could <tool_call>{CALL}</tool_call> but</think>Yes.", offered=("find",))
    assert (output.text, output.calls) == ("Yes.", [])


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
