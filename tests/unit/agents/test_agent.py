"""The loop: tools, replay, masking, malformed calls, and an end in any case."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from agents import agent
from agents.budget import Gauge, count_tokens, size
from agents.llm import (
    BadCompletion,
    ChatMessage,
    Completion,
    ContextOverflow,
    ModelAuth,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    ModelUnpaid,
    OnText,
    Opaque,
    Request,
    ToolCall,
    ToolSpec,
)
from agents.spec import TurnSpec
from agents.tools import Tool, ToolError
from memory.text.secrets.redact import redact as masking
from tests.kit.fakes import ScriptedModel, calls, says

REQUEST = Request(messages=(ChatMessage(role="user", content="hi"),))


class Amount(BaseModel):
    amount: int


def adder(done: list[tuple[int, int, int]]) -> Tool:
    async def run(n: int, i: int, arguments: Amount) -> str:
        if arguments.amount < 0:
            raise ToolError("nothing below zero")
        done.append((n, i, arguments.amount))
        return f"added {arguments.amount}"

    return Tool(name="add", description="Adds.", arguments=Amount, run=run)


async def run(
    model: ScriptedModel,
    *,
    done: list[tuple[int, int, int]] | None = None,
    stored: list[Completion] | None = None,
    kept: list[int] | None = None,
    redact: Callable[[str], str] = lambda text: text.replace("hunter2", "[secret]"),
) -> agent.Reply:
    async def keep_step(n: int, _completion: Completion) -> None:
        if kept is not None:
            kept.append(n)

    return await agent.run(
        model,
        lambda room, traffic, tools, bare=False: replace(
            REQUEST, messages=(*REQUEST.messages, *traffic), tools=tuple(tools)
        ),
        (adder(done if done is not None else []),),
        limits=TurnSpec(),
        steps=agent.TurnSteps(stored=stored or [], keep=keep_step),
        gauge=Gauge(),
        redact=redact,
        on_text=None,
    )


async def test_tools_run_and_their_results_go_back_to_the_model() -> None:
    done: list[tuple[int, int, int]] = []
    model = ScriptedModel(calls(("add", '{"amount": 2}'), ("add", '{"amount": 3}')), "Five.")
    reply = await run(model, done=done)
    assert (reply.text, done) == ("Five.", [(0, 0, 2), (0, 1, 3)])
    assert [m.content for m in model.requests[1].messages[-2:]] == ["added 2", "added 3"]


async def test_what_a_server_wants_back_goes_back_with_the_call_and_holds_no_secret() -> None:
    """A thought in plain words is masked. One that is signed can't be changed, so it is left out."""
    thought = "The key hunter2 opens it."
    opaque = Opaque(
        origin="o",
        message={"reasoning_content": thought, "details": [{"text": thought, "signature": "s"}], "signed": "aHVu"},
    )
    model = ScriptedModel(replace(calls(("add", '{"amount": 2}')), opaque=opaque), "Two.")
    reply = await run(model)
    kept = reply.traffic[0].opaque
    assert kept is not None and kept == model.requests[1].messages[-2].opaque
    assert kept.message == {"reasoning_content": "The key [secret] opens it.", "signed": "aHVu"}


async def test_stored_steps_are_not_paid_for_again() -> None:
    """A turn taken up after a crash replays what it already got."""
    kept: list[int] = []
    done: list[tuple[int, int, int]] = []
    model = ScriptedModel("Five.")
    reply = await run(model, stored=[calls(("add", '{"amount": 5}'))], kept=kept, done=done)
    assert (reply.text, len(model.requests), kept, done) == ("Five.", 1, [1], [(0, 0, 5)])
    assert len(reply.completions) == 1


@pytest.mark.parametrize(
    ("name", "kept"),
    [("add it", "add_it"), ("functions.find", "functions_find"), ("加", "_"), ("", "_"), ("x" * 5_000, "x" * 64)],
)
async def test_a_tools_name_is_kept_in_letters_every_vendor_takes(name: str, kept: str) -> None:
    """One odd name in history is a refusal of every later request."""
    reply = await run(ScriptedModel(calls((name, "{}")), "Sorry."))
    assert reply.traffic[0].tool_calls[0].name == kept
    assert f"no tool called '{kept}'" in reply.traffic[1].content


async def test_a_nul_in_arguments_reaches_neither_tool_nor_history() -> None:
    """It is legal JSON, and no database and few vendors take it; a backslash before a u is none."""
    reply = await run(ScriptedModel(calls(("add", r'{"amount": 1, "a\u0000": "b\\u0000"}')), "Sorry."))
    assert reply.traffic[0].tool_calls[0].arguments == r'{"amount": 1, "a": "b\\u0000"}'


async def test_unknown_tools_and_refusals_are_told_to_the_model() -> None:
    """Whatever goes wrong in a tool never ends a turn."""
    model = ScriptedModel(calls(("fly", "{}"), ("add", '{"amount": -1}')), "I can't.")
    reply = await run(model)
    assert "no tool called 'fly'" in reply.traffic[1].content
    assert reply.traffic[2].content == "Error: nothing below zero"


async def test_a_model_that_only_calls_tools_is_stopped() -> None:
    """A turn has at most 25 steps; the last is offered no tools."""
    model = ScriptedModel(*[calls(("add", f'{{"amount": {n}}}')) for n in range(30)])
    with pytest.raises(BadCompletion, match="25 times"):
        await run(model)
    assert len(model.requests) == 25
    assert model.requests[-1].tools == () and model.requests[-2].tools != ()


async def test_the_same_call_again_is_answered_from_its_first_result() -> None:
    """A small model that asks for one thing for ever must neither do it again and again nor cost 25 calls."""
    done: list[tuple[int, int, int]] = []
    model = ScriptedModel(*[calls(("add", '{"amount": 1}'))] * 2, calls(("add", '{ "amount":1}')), "Added.")
    reply = await run(model, done=done)
    assert (reply.text, len(done), len(model.requests)) == ("Added.", 1, 4)
    assert [request.tools == () for request in model.requests] == [False, False, False, True]
    results = [message.content for message in reply.traffic if message.role == "tool"]
    assert results[:2] == ["added 1"] * 2 and results[2].endswith("added 1") and "Answer the person" in results[2]


async def test_a_model_that_asks_the_same_even_without_tools_is_given_up() -> None:
    model = ScriptedModel(*[calls(("add", '{"amount": 1}')) for _ in range(30)])
    with pytest.raises(BadCompletion):
        await run(model)
    assert len(model.requests) == 4


async def test_an_answer_cut_at_its_longest_length_says_so() -> None:
    cut = Completion(text="And then", model="m", provider="p", finish="length")
    assert (await run(ScriptedModel(cut))).cut
    assert not (await run(ScriptedModel("And then."))).cut


async def test_an_empty_answer_is_an_error_not_a_message() -> None:
    with pytest.raises(BadCompletion):
        await run(ScriptedModel(says("  \n")))


async def test_secrets_in_what_the_model_writes_are_masked_before_anything_is_done_with_them() -> None:
    """Steps are stored and tools write: neither may see a secret."""
    model = ScriptedModel(calls(("add", '{"amount": 1, "note": "hunter2"}'), text="using hunter2"), "It is hunter2.")
    reply = await run(model)
    assert "hunter2" not in repr(reply)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("value", ["my password is hunter2x9", "mein Passwort ist Sonne123"])
async def test_a_secret_beside_an_id_leaves_the_id(value: str, indent: int | None) -> None:
    """Else the model is told that there is no such memory, and asks again for ever."""
    for given in ({"id": "m_7k2pq4", "value": value}, {"value": value, "id": "m_7k2pq4"}):
        for separators in ((", ", ": "), (",", ":")):
            arguments = json.dumps(given, indent=indent, separators=separators)
            reply = await run(ScriptedModel(calls(("correct_fact", arguments)), "Done."), redact=masking)
            masked = json.loads(reply.traffic[0].tool_calls[0].arguments)
            assert masked == {"id": "m_7k2pq4", "value": f"{value.rsplit(' ', 1)[0]} [secret: password]"}


def test_a_completion_survives_its_json_form() -> None:
    completion = calls(("add", '{"amount": 2}'), text="因为")
    assert Completion.from_json(completion.to_json()) == completion


OVER = ContextOverflow("The prompt is too long.")
ODD = ModelRefused("Nope.", of_request=True)
PAST = (
    ChatMessage(role="user", content="what time is it?"),
    ChatMessage(role="assistant", content="", tool_calls=(ToolCall(id="c1", name="now", arguments="{}"),)),
    ChatMessage(role="tool", content="noon", tool_call_id="c1"),
    ChatMessage(role="assistant", content="Noon. " * 60),
)


async def asked(model: ScriptedModel, *, context: int = 100_000, refused: bool = False, **more: Any) -> agent.Reply:
    def prompted(
        room: int, traffic: Sequence[ChatMessage], tools: Sequence[ToolSpec], *, bare: bool = False
    ) -> Request:
        whole = size(Request(messages=PAST), count_tokens) <= room
        past = () if bare else PAST if whole else PAST[-1:]
        return Request(messages=(*past, *REQUEST.messages, *traffic), tools=tuple(tools))

    return await agent.run(
        model,
        prompted,
        (),
        limits=TurnSpec(),
        steps=agent.TurnSteps(stored=[], keep=_keep, refused=refused, **more),
        gauge=Gauge([context]),
        redact=lambda text: text,
        on_text=None,
    )


def kinds(model: ScriptedModel) -> list[str]:
    """What each request held of the past."""
    return [
        "all" if any(message.tool_calls for message in request.messages)
        else "told" if any("(Result of" in message.content for message in request.messages)
        else "less" if len(request.messages) > 1
        else "none"
        for request in model.requests
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "context", "refused", "spared", "held"),
    [
        ((ODD, "Hi."), 100_000, True, "calls", ["all", "told"]),
        ((ODD, ODD, "Hi."), 100_000, True, "before", ["all", "told", "none"]),
        ((ODD, "Hi."), 200, False, "", ["all", "less"]),
        ((ODD, ODD, "Hi."), 200, False, "calls", ["all", "less", "told"]),
        ((ODD, ODD, ODD, "Hi."), 200, False, "before", ["all", "less", "told", "none"]),
        ((OVER, "Hi."), 170, False, "", ["all", "less"]),
        ((OVER, OVER, "Hi."), 170, False, "before", ["all", "less", "none"]),
        ((BadCompletion("empty", of_request=True), "Hi."), 100_000, True, "before", ["all", "none"]),
    ],
)
async def test_a_refused_request_is_asked_again_with_less(
    answers: tuple[str | Exception, ...], context: int, refused: bool, spared: str, held: list[str]
) -> None:
    """Smaller, then without the calls of earlier turns, then without the past; a try that changes nothing is left out."""
    model = ScriptedModel(*answers)
    reply = await asked(model, context=context, refused=refused)
    assert (reply.text, reply.spared, kinds(model)) == ("Hi.", spared, held)


@pytest.mark.parametrize(
    ("error", "context", "refused"),
    [
        (ODD, 100_000, False), (ModelRefused("unknown model"), 200, True), (ModelAuth("no key"), 200, True),
        (ModelUnpaid("no credit"), 200, True), (ModelUnavailable("down"), 200, True),
    ],
)  # fmt: skip
async def test_what_less_would_not_mend_is_told_at_once(error: ModelError, context: int, refused: bool) -> None:
    """Each try takes the person's time, and somebody's money."""
    model = ScriptedModel(error)
    with pytest.raises(type(error)):
        await asked(model, context=context, refused=refused)
    assert len(model.requests) == 1


async def test_no_request_is_made_again_once_a_word_was_shown() -> None:
    """The person would read two beginnings."""

    class Breaking(ScriptedModel):
        async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
            self.requests.append(request)
            assert on_text is not None
            await on_text("Once upon")
            raise OVER

    shown: list[str] = []

    async def show(text: str) -> None:
        shown.append(text)

    model = Breaking()
    with pytest.raises(ContextOverflow):
        await agent.run(
            model,
            lambda room, traffic, tools, bare=False: REQUEST if bare else replace(REQUEST, max_tokens=room),
            (),
            limits=TurnSpec(),
            steps=agent.TurnSteps(stored=[], keep=_keep),
            gauge=Gauge(),
            redact=lambda text: text,
            on_text=show,
        )
    assert (shown, len(model.requests)) == (["Once upon"], 1)


async def _keep(_n: int, _completion: Completion) -> None:
    return None
