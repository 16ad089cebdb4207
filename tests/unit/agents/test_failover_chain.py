"""Tests of the chain: what is tried again, what goes to the next model, and what is told in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agents.failover import DEMOTED, LONGEST_WAIT, SLOW, UNPAID, WAITS, Chain, Member, Servers
from agents.llm import (
    BadCompletion,
    ChatMessage,
    Completion,
    ContextOverflow,
    ModelAuth,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelUnavailable,
    ModelUnpaid,
    OnText,
    Provider,
    Request,
)

REQUEST = Request(messages=(ChatMessage(role="user", content="hello"),))


class Scripted:
    """A provider that plays its acts in order, one a call: an error to raise, or the pieces of an answer.

    A piece that is an error is raised in the middle of the answer. The last act is repeated.
    """

    def __init__(self, name: str, *acts: Exception | Sequence[str | Exception]) -> None:
        self.name = name
        self.calls = 0
        self.closed = False
        self._acts = acts

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        act = self._acts[min(self.calls, len(self._acts) - 1)]
        self.calls += 1
        text = ""
        for piece in [act] if isinstance(act, Exception) else act:
            if isinstance(piece, Exception):
                raise piece
            text += piece
            if on_text is not None:
                await on_text(piece)
        return Completion(text=text, model="m", provider=self.name)

    async def aclose(self) -> None:
        self.closed = True


class Slow(Scripted):
    """A provider whose every act takes `seconds` of the world's clock."""

    def __init__(self, world: World, seconds: float, *acts: Exception | Sequence[str | Exception]) -> None:
        super().__init__("slow/1", *acts)
        self._world = world
        self._seconds = seconds

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        self._world.time += self._seconds
        return await super().complete(request, on_text)


class Unclosable(Scripted):
    async def aclose(self) -> None:
        raise OSError("the socket is gone")


class World:
    """A clock that only sleeping moves, a middling random number, and a screen."""

    def __init__(self, random: float = 0.5) -> None:
        self.time = 1000.0
        self.slept: list[float] = []
        self.shown: list[str] = []
        self._random = random

    def chain(self, *providers: Provider | Member, seconds: float | None = None) -> Chain:
        return Chain(providers, sleep=self.sleep, random=lambda: self._random, now=lambda: self.time, seconds=seconds)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    async def show(self, text: str) -> None:
        self.shown.append(text)


async def test_the_first_model_answers_and_the_second_is_left_alone() -> None:
    """A fallback costs money and may see the conversation only when it is needed."""
    world, first, second = World(), Scripted("a/1", ["Hi", "!"]), Scripted("b/2", ["no"])
    completion = await world.chain(first, second).complete(REQUEST, world.show)
    assert (completion.text, completion.provider, world.shown) == ("Hi!", "a/1", ["Hi", "!"])
    assert (first.calls, second.calls, world.slept) == (1, 0, [])


async def test_a_background_call_asks_a_model_that_has_just_failed_only_once() -> None:
    """A command that ends would otherwise wait ten seconds more for what has just been in vain."""
    world, model, servers = World(), Scripted("a/1", DOWN), Servers(lambda: world.time)
    for background, calls in ((False, 4), (True, 5)):
        chain = Chain(
            [model],
            sleep=world.sleep,
            random=lambda: 0.5,
            now=lambda: world.time,
            servers=servers,
            background=background,
        )
        with pytest.raises(ModelUnavailable):
            await chain.complete(REQUEST)
        assert model.calls == calls


async def test_the_longest_wait_itself_is_still_waited() -> None:
    world, model = World(), Scripted("a/1", ModelRateLimited("slow", retry_after=LONGEST_WAIT), ["ok"])
    await world.chain(model).complete(REQUEST)
    assert world.slept == [LONGEST_WAIT]


DOWN, BACK = ModelUnavailable("down"), ["back"]


def spent(seconds: float) -> ModelRateLimited:
    return ModelRateLimited("slow", retry_after=seconds)


#: Why; what the first model does and whether there is a second one, which answers "here"; the text of the answer or the
#: error; how often each is called, and the waits. Most failures of vendors last seconds, and a person would rather wait
#: than read an error, but not for half a minute while another model stands ready.
TRIES: list[tuple[str, list[Any], bool, str | type[ModelError], tuple[int, int], Sequence[float]]] = [
    ("a passing failure", [DOWN] * 3 + [BACK], False, "back", (4, 0), WAITS),
    ("a busy minute", [ModelRateLimited("slow")] * 3 + [BACK], False, "back", (4, 0), WAITS),
    ("an unwatched answer that breaks off", [["Once", BadCompletion("cut")], BACK], False, "back", (2, 0), WAITS[:1]),
    ("one that stays down", [DOWN], False, ModelUnavailable, (4, 0), WAITS),
    ("a wait that is asked for, in full", [spent(7.5), BACK], False, "back", (2, 0), [7.5]),
    ("hardly a wait, which is no burst", [spent(0.0), BACK], False, "back", (2, 0), WAITS[:1]),
    ("a tenth of a second, either", [spent(0.1), BACK], False, "back", (2, 0), WAITS[:1]),
    ("a long wait beside another model", [spent(LONGEST_WAIT + 1)], True, "here", (1, 1), []),
    ("a long wait without one", [spent(3600.0)], False, ModelRateLimited, (1, 0), []),
    ("a wrong key", [ModelAuth("bad key")], True, "here", (1, 1), []),
    ("no such model", [ModelRefused("no such model")], True, "here", (1, 1), []),
]


@pytest.mark.parametrize(
    ("acts", "another", "told", "calls", "slept"), [row[1:] for row in TRIES], ids=[row[0] for row in TRIES]
)
async def test_what_is_tried_again_and_what_goes_to_the_next_model(
    acts: list[Any], another: bool, told: str | type[ModelError], calls: tuple[int, int], slept: Sequence[float]
) -> None:
    world, first, second = World(), Scripted("a/1", *acts), Scripted("b/2", ["here"])
    chain = world.chain(first, second) if another else world.chain(first)
    if isinstance(told, str):
        assert (await chain.complete(REQUEST)).text == told
    else:
        with pytest.raises(told) as caught:
            await chain.complete(REQUEST)
        assert caught.value.retry_after == getattr(acts[0], "retry_after", None)
    assert ((first.calls, second.calls), world.slept) == (calls, list(slept))


@pytest.mark.parametrize(("random", "factor"), [(0.0, 0.75), (0.999_999, 1.25)])
async def test_waits_vary_by_a_quarter(random: float, factor: float) -> None:
    """Many chats that failed together must not come back together. What a vendor asks for does not vary."""
    world = World(random)
    with pytest.raises(ModelUnavailable):
        await world.chain(Scripted("a/1", DOWN)).complete(REQUEST)
    assert world.slept == pytest.approx([wait * factor for wait in WAITS], rel=1e-5)
    world = World(random)
    await world.chain(Scripted("a/1", spent(7.5), BACK)).complete(REQUEST)
    assert min(world.slept) >= 7.5


@pytest.mark.parametrize(("seconds", "calls"), [(WAITS[0], 1), (WAITS[0] + 0.1, 2), (sum(WAITS) + 1, 4), (None, 4)])
async def test_no_wait_is_begun_that_outlasts_the_callers_patience(seconds: float | None, calls: int) -> None:
    """The reason said now is worth more than "that took too long" said later; another model needs no wait."""
    world, model, second = World(), Scripted("a/1", DOWN), Scripted("b/2", ["here"])
    with pytest.raises(ModelUnavailable, match="down"):
        await world.chain(model, seconds=seconds).complete(REQUEST)
    assert model.calls == calls
    assert sum(world.slept) < (seconds or sum(WAITS) + 1)
    assert (await world.chain(model, second, seconds=0.1).complete(REQUEST)).text == "here"


async def test_a_context_overflow_is_neither_tried_again_nor_passed_on() -> None:
    """The caller shortens the request and asks again; another model would get the same too long text."""
    world, first, second = World(), Scripted("a/1", ContextOverflow("too long")), Scripted("b/2", ["no"])
    chain = world.chain(first, second)
    with pytest.raises(ContextOverflow, match="too long"):
        await chain.complete(REQUEST)
    assert (first.calls, second.calls, world.slept) == (1, 0, [])
    with pytest.raises(ContextOverflow):
        await chain.complete(REQUEST)
    assert (first.calls, second.calls) == (2, 0), "an overflow says nothing against the model"


async def test_a_request_too_long_for_one_model_is_given_to_one_that_can_read_more() -> None:
    """A fallback with a larger context answers where the first model can't."""
    world = World()
    small, same, large = Scripted("a/1", ContextOverflow("long")), Scripted("b/2", ["no"]), Scripted("c/3", ["yes"])
    members = [Member(provider=p, context=c) for p, c in ((small, 4096), (same, 4096), (large, 32_000))]
    chain = world.chain(*members)
    assert (await chain.complete(REQUEST)).text == "yes"
    assert (small.calls, same.calls) == (1, 0)
    await chain.complete(REQUEST)
    assert small.calls == 2  # the next message may be short again


async def test_a_server_that_is_down_is_down_for_all_of_its_models() -> None:
    """Every model there would be asked in vain, in this chat and in all others."""
    world, servers = World(), Servers(lambda: world.time)
    first, second, third = Scripted("a/1", ModelUnavailable("down")), Scripted("a/2", ["no"]), Scripted("b/3", ["yes"])

    def chain() -> Chain:
        members = [
            Member(provider=first, address="http://a"),
            Member(provider=third, address="http://b"),
            Member(provider=second, address="http://a"),
        ]
        return Chain(members, sleep=world.sleep, random=lambda: 0.5, now=lambda: world.time, servers=servers)

    assert (await chain().complete(REQUEST)).text == "yes"
    calls = first.calls
    assert (await chain().complete(REQUEST)).text == "yes"
    assert (first.calls, second.calls) == (calls, 0)


async def test_a_model_that_failed_is_no_other_of_its_name_at_another_address() -> None:
    """Two machines at home may serve the same model, one of them without enough memory for it."""
    world, servers = World(), Servers(lambda: world.time)
    broken, well, other = Scripted("a/m", ModelAuth("no")), Scripted("a/m", ["well"]), Scripted("b/m", ["other"])

    async def answered(*members: tuple[Scripted, str]) -> tuple[str, int]:
        chain = Chain(
            [Member(provider=provider, address=address) for provider, address in members],
            sleep=world.sleep,
            random=lambda: 0.5,
            now=lambda: world.time,
            servers=servers,
        )
        completion = await chain.complete(REQUEST)
        return completion.text, completion.place

    assert await answered((broken, "http://a"), (other, "http://c")) == ("other", 1)
    assert await answered((well, "http://b"), (other, "http://c")) == ("well", 0)
    assert await answered((broken, "http://a"), (other, "http://c")) == ("other", 1)
    assert broken.calls == 1, "the answer at the other address says nothing of this one"


async def test_nothing_is_tried_again_once_text_was_shown() -> None:
    world, first, second = (World(), Scripted("a/1", ["Once", BadCompletion("cut off")]), Scripted("b/2", ["no"]))
    with pytest.raises(BadCompletion, match=r"a/1.*cut off.*already shown"):
        await world.chain(first, second).complete(REQUEST, world.show)
    assert (first.calls, second.calls, world.shown) == (1, 0, ["Once"])


async def test_white_space_does_not_count_as_shown() -> None:
    """Some models open with blank lines, which nobody sees."""
    world, model = World(), Scripted("a/1", ["\n\n", BadCompletion("cut")], ["Whole"])
    assert (await world.chain(model).complete(REQUEST, world.show)).text == "Whole"


async def test_the_error_names_every_model_tried_and_is_the_last_ones() -> None:
    """The operator must see that the fallback failed too, and how."""
    world = World()
    first, second = Scripted("a/1", ModelUnavailable("down")), Scripted("b/2", ModelAuth("bad key"))
    with pytest.raises(ModelAuth, match=r"2 models.*\[a/1\] down.*\[b/2\] bad key"):
        await world.chain(first, second).complete(REQUEST)


async def test_a_model_that_failed_is_tried_last_for_a_minute() -> None:
    """While a vendor is down each reply would otherwise begin with ten seconds of waiting."""
    world = World()
    first = Scripted("a/1", ModelAuth("bad key"), ["first"])
    chain = world.chain(first, Scripted("b/2", ["second"]))
    assert (await chain.complete(REQUEST)).text == "second"
    world.time += DEMOTED - 1
    assert (await chain.complete(REQUEST)).text == "second"
    assert first.calls == 1
    world.time += 1
    assert (await chain.complete(REQUEST)).text == "first"


async def test_a_model_that_asked_for_an_hour_is_tried_last_for_that_hour() -> None:
    """A vendor that names a time has told that earlier calls are in vain."""
    world = World()
    first = Scripted("a/1", ModelRateLimited("spent", retry_after=3600.0), ["first"])
    chain = world.chain(first, Scripted("b/2", ["second"]))
    await chain.complete(REQUEST)
    world.time += 3599
    assert (await chain.complete(REQUEST)).text == "second"
    world.time += 1
    assert (await chain.complete(REQUEST)).text == "first"


async def test_an_account_with_nothing_left_is_asked_once_and_last_for_an_hour() -> None:
    world, empty, other = World(), Scripted("a/1", ModelUnpaid("no credit")), Scripted("b/2", ["Hi."])
    chain = world.chain(empty, other)
    calls = []
    for _ in range(4):
        assert (await chain.complete(REQUEST)).text == "Hi."
        calls.append(empty.calls)
        world.time += UNPAID / 2
    assert (calls, world.slept) == ([1, 1, 2, 2], [])


async def test_a_refusal_by_any_model_of_the_chain_may_be_due_to_the_request() -> None:
    world = World()
    refusing, down = Scripted("a/1", ModelRefused("nope", of_request=True)), Scripted("b/2", ModelAuth("no key"))
    with pytest.raises(ModelAuth) as caught:
        await world.chain(refusing, down).complete(REQUEST)
    assert caught.value.of_request


async def test_a_model_set_back_still_answers_when_the_others_fail() -> None:
    first = Scripted("a/1", ModelAuth("bad key"), ["first"])
    second = Scripted("b/2", ["second"], ModelRefused("gone"))
    chain = World().chain(first, second)
    assert [(await chain.complete(REQUEST)).text for _ in range(2)] == ["second", "first"]
    assert (first.calls, second.calls) == (2, 2)


async def test_an_answer_ends_being_tried_last() -> None:
    """When all have failed, the one that came back goes first and not the one that did not."""
    first, second = Scripted("a/1", ModelAuth("bad key")), Scripted("b/2", ModelAuth("bad key"), ["back"])
    chain = World().chain(first, second)
    with pytest.raises(ModelAuth):
        await chain.complete(REQUEST)
    assert [(await chain.complete(REQUEST)).text for _ in range(2)] == ["back", "back"]
    assert (first.calls, second.calls) == (2, 3)


async def test_a_failure_that_is_not_the_models_passes_through() -> None:
    """A screen that can't be written to is no reason to ask another model."""
    world, first, second = World(), Scripted("a/1", ["Hi"]), Scripted("b/2", ["no"])

    async def broken(text: str) -> None:
        raise OSError("the screen is gone")

    with pytest.raises(OSError, match="screen"):
        await world.chain(first, second).complete(REQUEST, broken)
    assert (first.calls, second.calls) == (1, 0)


async def test_a_cancelled_wait_ends_the_call() -> None:
    """A turn that is stopped or out of time must not go on calling models."""
    entered = asyncio.Event()

    async def forever(seconds: float) -> None:
        entered.set()
        await asyncio.Event().wait()

    first, second = Scripted("a/1", ModelUnavailable("down")), Scripted("b/2", ["no"])
    chain = Chain([first, second], sleep=forever, random=lambda: 0.5, now=lambda: 0.0)
    task = asyncio.create_task(chain.complete(REQUEST))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (first.calls, second.calls) == (1, 0)


async def test_a_model_that_hangs_is_not_asked_again_while_another_stands_ready() -> None:
    """Four silences of two minutes each would end every turn before the fallback's first word."""
    world = World()
    first, second = Slow(world, SLOW, ModelUnavailable("stalled")), Scripted("b/2", ["here"])
    assert (await world.chain(first, second).complete(REQUEST)).text == "here"
    assert (first.calls, world.slept) == (1, [])


async def test_the_last_model_is_asked_again_even_when_it_hangs() -> None:
    """There is nobody else to ask."""
    world = World()
    model = Slow(world, SLOW, ModelUnavailable("stalled"), ["back"])
    assert (await world.chain(model).complete(REQUEST)).text == "back"
    assert model.calls == 2


class Hanging(Scripted):
    """A provider that lets time pass, and then waits until it is cancelled."""

    def __init__(self, world: World, seconds: float, *shown: str) -> None:
        super().__init__("hanging/1", ["never"])
        self._world = world
        self._seconds = seconds
        self._shown = shown
        self.entered = asyncio.Event()

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        self.calls += 1
        for text in self._shown:
            assert on_text is not None
            await on_text(text)
        self._world.time += self._seconds
        self.entered.set()
        await asyncio.Event().wait()
        raise AssertionError("nothing sets it")


@pytest.mark.parametrize(
    ("seconds", "shown", "next_one"), [(SLOW, (), "second"), (SLOW - 1, (), "hanging"), (SLOW, ("Once",), "hanging")]
)
async def test_a_model_that_was_waited_for_in_vain_is_tried_last_next_time(
    seconds: float, shown: tuple[str, ...], next_one: str
) -> None:
    """Else each message of the next hour would wait out its whole turn; being stopped early or while talking is no fault."""
    world = World()
    hanging, second = Hanging(world, seconds, *shown), Scripted("second/2", ["here"])
    chain = world.chain(hanging, second)
    task = asyncio.create_task(chain.complete(REQUEST, world.show))
    await hanging.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    again = asyncio.create_task(chain.complete(REQUEST, world.show))
    await asyncio.sleep(0)
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)
    assert (hanging.calls, second.calls) == ((1, 1) if next_one == "second" else (2, 0))


async def test_closing_reaches_every_provider_even_when_one_fails() -> None:
    """A connection left open keeps the process from ending cleanly."""
    first, last = Scripted("a/1", ["x"]), Scripted("c/3", ["x"])
    with pytest.raises(OSError, match="socket"):
        await World().chain(first, Unclosable("b/2", ["x"]), last).aclose()
    assert (first.closed, last.closed) == (True, True)


def test_the_name_lists_the_models_in_order() -> None:
    """/status shows what will be asked, and what stands behind it."""
    assert World().chain(Scripted("a/1", ["x"]), Scripted("b/2", ["x"])).name == "a/1 > b/2"


def test_a_chain_of_nothing_is_refused() -> None:
    """Without a model each call would fail with no reason to tell."""
    with pytest.raises(ValueError, match="at least one"):
        World().chain()
