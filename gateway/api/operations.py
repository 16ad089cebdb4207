"""The operations of programs on their person's memory: one table for the memory API and for the MCP server.

Invariants: no argument names a person. A memory that a program writes names its source: a message of its person,
"through" the program. Text is masked before it is kept. A tool can't forget: it raises a question in the person's own
chat, and only they answer it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from channels.api import API
from channels.base import Channel, Inbound, Place
from gateway.api.callers import ApiRefusal, Caller
from gateway.api.places import said, thread_of
from gateway.api.wire import JSON
from gateway.commands.forget import CHOICES, PRESET
from gateway.pipeline.delivery import pieces
from gateway.pipeline.questions import buttons
from gateway.pipeline.request import Agent
from gateway.pipeline.store import Roster, Store, where_said
from gateway.pipeline.toolbox import FORGET
from gateway.wording import phrases
from gateway.wording.parts import part_of
from gateway.wording.texts import Texts, spoken
from memory.chat.edits import Edits
from memory.chat.shown import Shown
from memory.context import Context
from memory.errors import MemoryFault, NotFound, StorageError, UnknownFilter, UnreadFilter
from memory.forgetting.choose import Selection
from memory.forgetting.plan import How
from memory.mailbox.outbox import Part
from memory.people.keyring import KeyScope
from memory.recall.recall import excerpt
from memory.recall.search import Hit
from memory.service import Service
from memory.store.browsing import LISTED
from memory.store.memories import Memory
from memory.store.questions import Question

#: The conversation that holds the sources of memories which programs write.
_DESK: Final = "memory"
_TEXT: Final = 2_000
_NOT_KEPT: Final = (
    "Not saved: there is nothing in it to keep, or the person wants nothing learned. What they type behind /remember in"
    " a chat is kept."
)
T = TypeVar("T")


class _NothingKept(Exception):
    """Raised to take back the message that would have been a source."""


class OperationArguments(BaseModel):
    """Arguments of an operation; unknown ones are a mistake."""

    model_config = ConfigDict(extra="forbid")


class SearchMemory(OperationArguments):
    query: str = Field(description="what to look for, in the person's own words", min_length=1, max_length=500)
    limit: int = Field(default=8, ge=1, le=50, description="the most results")


class ListMemories(OperationArguments):
    filter: str = Field(
        default="", max_length=500, description="only some, such as topic:roof since:march about:Miriam category:health"
    )
    page: int = Field(default=1, ge=1, le=10_000, description="the page, from 1")
    limit: int = Field(default=20, ge=1, le=100, description="memories on a page")


class OneMemory(OperationArguments):
    id: str = Field(description="the id of the memory, such as m_7k2pq4", min_length=1, max_length=20)


class OneEntity(OperationArguments):
    name: str = Field(description="a person, place, project or organisation", min_length=1, max_length=200)


class RememberText(OperationArguments):
    text: str = Field(description="one statement, as short as it can be", min_length=1, max_length=_TEXT)
    key: str = Field(default="", description="what it is about, such as home, allergy, likes", max_length=128)


class CorrectMemory(OneMemory):
    value: str = Field(description="what holds instead, as short as it can be", min_length=1, max_length=_TEXT)


class PinMemory(OneMemory):
    pinned: bool = Field(description="true: it never fades")


class EraseMemory(OneMemory):
    how: Literal["words", "memory"] = Field(
        default="words", description="words: with the messages it was learned from; memory: the memory alone"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRequest:
    """A program's request about memory: the person, the agent whose memory it is, and the context."""

    caller: Caller
    served: Agent
    store: Store
    context: Context
    texts: Texts

    @property
    def memory(self) -> Service:
        return self.store.memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation: its name, the permission that a key needs for it, and the function that does it.

    A `tool` is offered by the server of tools. A `destructive` one may lose something for ever.
    """

    name: str
    scope: KeyScope
    description: str
    arguments: type[OperationArguments]
    run: Callable[[Operations, MemoryRequest, Any], Awaitable[JSON]]
    tool: bool = True
    destructive: bool = False


class Operations:
    """The operations, run for a caller."""

    def __init__(
        self,
        roster: Roster,
        channels: Mapping[str, Channel],
        *,
        mask: Callable[[str], str],
        now: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        """`mask` takes secrets out of a text that is to be kept. `new_id` gives an id that is never given again."""
        self._roster = roster
        self._channels = channels
        self._mask = mask
        self._now = now
        self._new_id = new_id

    async def do(self, name: str, caller: Caller, given: Mapping[str, Any]) -> JSON:
        """Returns the result of an operation. Raises `ApiRefusal`."""
        operation = TABLE.get(name)
        if operation is None:
            raise ApiRefusal(404, "not_found", f"There is no operation {name!r}.")
        caller.needs(operation.scope)
        try:
            arguments = operation.arguments.model_validate(given)
        except ValidationError as exc:
            problem = exc.errors(include_url=False, include_input=False)[0]
            at = ".".join(str(step) for step in problem["loc"])
            raise ApiRefusal(
                400, "invalid_request", f"{at or 'arguments'}: {problem['msg']}", param=at or None
            ) from exc
        asking = await self._asking(caller)
        try:
            return await operation.run(self, asking, arguments)
        except StorageError:
            raise
        except (UnknownFilter, UnreadFilter) as exc:
            raise ApiRefusal(400, "invalid_filter", asking.texts.unread(exc), param="filter") from exc
        except MemoryFault as exc:
            told = asking.texts.refusal(str(given.get("id", "")), exc)
            raise ApiRefusal(404 if isinstance(exc, NotFound) else 409, exc.code, told) from exc

    async def _asking(self, caller: Caller) -> MemoryRequest:
        default = self._roster.default
        name = next(
            (one for one in (default, *self._roster.stores) if caller.store in (None, self._roster.stores[one])),
            default,
        )
        served, store = self._roster.agents[name], self._roster.stores[name]
        inbound = self._inbound(caller, served, "")
        context = await store.memory.identities.context(where_said(inbound, served.spec), caller.who)
        texts = Texts(spoken(context.speaker.language, "en"), context.timezone)
        return MemoryRequest(caller=caller, served=served, store=store, context=context, texts=texts)

    def _inbound(self, caller: Caller, served: Agent, text: str) -> Inbound:
        thread = thread_of(served.spec.name, _DESK)
        return said(caller.user_id, caller.name, thread, text, key=f"desk:{self._new_id()}", at=self._now())

    # Reading ----------------------------------------------------------------------------------------------------

    async def search(self, asking: MemoryRequest, given: SearchMemory) -> JSON:
        hits = await asking.memory.browse.search(asking.context, given.query, limit=given.limit)
        return {"results": [_found(asking, hit, given.query) for hit in hits]}

    async def list_(self, asking: MemoryRequest, given: ListMemories) -> JSON:
        browse = asking.memory.browse
        filters = await browse.filters(asking.context, given.filter, group_of=part_of)
        shelf = await browse.shelf(asking.context, LISTED, filters=filters, limit=given.limit, page=given.page)
        # A program that turns pages until one is empty must not get the last page for ever.
        shown = shelf.memories if (given.page - 1) * given.limit < shelf.total else ()
        return {"results": [told(asking, one) for one in shown], "count": shelf.total, "page": given.page}

    async def show(self, asking: MemoryRequest, given: OneMemory) -> JSON:
        shown = await self._write(asking, lambda edits: edits.show(given.id))
        history = [told(asking, one) for one in shown.versions]
        return {**told(asking, shown.memory), "history": history, "sources": _sources(asking, shown)}

    async def entity(self, asking: MemoryRequest, given: OneEntity) -> JSON:
        found = await asking.memory.browse.entity(asking.context, given.name)
        if found is None:
            raise ApiRefusal(404, "not_found", f"Nothing is known here of {given.name!r}.")
        entity = found.entity
        return {
            "name": entity.name, "type": entity.type, "aliases": list(entity.aliases), "mentions": entity.mentions,
            "memories": [told(asking, one) for one in found.memories],
        }  # fmt: skip

    async def preview(self, asking: MemoryRequest, given: OneMemory) -> JSON:
        found = await asking.memory.forgetting.preview(asking.context, given.id)
        if found is None:
            raise NotFound(given.id)
        return {
            "memories": [told(asking, one) for one in found.shown], "messages": found.messages,
            "replies": found.replies, "staying": found.staying, "quoted": list(found.quoted),
        }  # fmt: skip

    # Writing ----------------------------------------------------------------------------------------------------

    async def remember(self, asking: MemoryRequest, given: RememberText) -> JSON:
        text = self._mask(given.text)

        def act(edits: Edits) -> list[Memory]:
            kept = edits.remember(text, key=given.key or None)
            if not kept:
                raise _NothingKept
            return kept

        try:
            kept = await self._write(asking, act, said=text)
        except _NothingKept:
            return {"results": [], "note": _NOT_KEPT}
        return {"results": [{**told(asking, one), "event": "ADD"} for one in kept]}

    async def correct(self, asking: MemoryRequest, given: CorrectMemory) -> JSON:
        value = self._mask(given.value)
        old, new = await self._write(asking, lambda edits: edits.correct(given.id, value), said=value)
        return {**told(asking, new), "event": "NONE" if old is new else "UPDATE", "replaces": old.short_id}

    async def confirm(self, asking: MemoryRequest, given: OneMemory) -> JSON:
        return told(asking, await self._write(asking, lambda edits: edits.confirm(given.id)))

    async def pin(self, asking: MemoryRequest, given: PinMemory) -> JSON:
        return told(asking, await self._write(asking, lambda edits: edits.pin(given.id, pinned=given.pinned)))

    async def erase(self, asking: MemoryRequest, given: EraseMemory) -> JSON:
        """Forgets a memory at once, for a program of the person's own; a crash on the way is reported as in a chat."""
        memory = await self._write(asking, lambda edits: edits.may_forget(given.id))
        inbound = self._inbound(asking.caller, asking.served, f"/forget {memory.short_id}")
        inbox_id = await asking.memory.mailbox.receive(
            platform=API, bot_id=API, update_key=inbound.update_key, session_key=inbound.place.session_key,
            payload=inbound.to_json(),
        )  # fmt: skip
        assert inbox_id is not None, "its key is new"
        selection, how = Selection(what="memories", memory_ids=(memory.id,)), given.how
        receipt = await asking.memory.forgetting.forget(asking.context, inbox_id, None, selection, _HOW[how])
        await asking.memory.mailbox.dismiss(inbox_id)
        assert receipt is not None, "no question could be over"
        return {
            "event": "DELETE", "memories": receipt.memories, "derived": receipt.derived, "messages": receipt.messages,
            "replies": receipt.replies, "scrubbed": receipt.scrubbed, "backups_until": _date(receipt.backups_until),
        }  # fmt: skip

    async def ask_to_forget(self, asking: MemoryRequest, given: OneMemory) -> JSON:
        """Asks the person in their own chat whether a memory is to be forgotten."""
        holder = asking.caller.holder
        platform, user_id = (
            (holder.account.platform, holder.account.user_id) if holder else (API, asking.caller.user_id)
        )
        theirs = await asking.memory.identities.whose(platform, user_id, private=True)
        if theirs is None:
            raise ApiRefusal(409, "no_chat", "The person has no private chat in which they could be asked.")
        texts = Texts(spoken(theirs.speaker.language, asking.served.spec.language), theirs.timezone)

        def act(edits: Edits) -> tuple[Question, Memory]:
            memory = edits.may_forget(given.id)
            selection = Selection(what="memories", memory_ids=(memory.id,))
            return edits.ask(FORGET, selection.fields(), choices=CHOICES, preset=PRESET), memory

        def ask(asked: tuple[Question, Memory]) -> tuple[Part, ...]:
            question, memory = asked
            said = phrases.tell(memory, theirs, language=texts.language)
            text = texts("forget.one", id=memory.short_id, said=said)
            channel = self._channels.get(Place.from_session_key(theirs.session.key).channel)
            through = texts("keys.asks", label=asking.caller.through)
            return pieces(channel, f"{through}\n{text}", buttons=buttons(question, texts, alone=True))

        await asking.memory.requests.run(theirs, act, tell=ask)
        asking.store.delivery.wake(theirs.session.key)
        return {"asked": True, "note": "Nothing is forgotten yet. The person is asked in their own chat, and decides."}

    async def _write(self, asking: MemoryRequest, act: Callable[[Edits], T], *, said: str = "") -> T:
        name = asking.texts("keys.through", name=asking.caller.name, label=asking.caller.through)
        return await asking.memory.requests.run(asking.context, act, said=said, author=name)


_HOW: Final[Mapping[str, How]] = {"words": "words", "memory": "memory"}


def told(asking: MemoryRequest, memory: Memory) -> JSON:
    """Returns a memory as programs read it, with the names that mem0's clients know."""
    return {
        "id": memory.short_id,
        "memory": phrases.tell(memory, asking.context, language=asking.texts.language),
        "kind": memory.kind,
        "key": memory.key,
        "value": memory.value,
        "categories": [memory.category],
        "topic": memory.topic,
        "created_at": _date(memory.learned_at),
        "updated_at": _date(memory.last_reinforced_at or memory.learned_at),
        "valid_until": _date(memory.valid_until),
        "pinned": memory.pinned,
        "confirmed": memory.confirmed,
        "unsure": memory.unsure,
    }


def _found(asking: MemoryRequest, hit: Hit, query: str) -> JSON:
    if hit.memory is not None:
        return {**told(asking, hit.memory), "score": round(hit.score, 4)}
    assert hit.passage is not None
    message = hit.passage.message
    words = excerpt(hit.passage, query, assistant=asking.served.spec.name)
    return {
        "id": None, "kind": "message", "created_at": _date(message.said_at), "score": round(hit.score, 4),
        "memory": phrases.quote(message, asking.context, words, language=asking.texts.language),
    }  # fmt: skip


def _sources(asking: MemoryRequest, shown: Shown) -> list[JSON]:
    mine = (asking.context.speaker.id, *asking.context.scope.selves)
    return [
        {"said_at": _date(one.said_at), "by": one.author_name, "own": one.author_id in mine, "text": one.text}
        for one in shown.sources
    ]


def _date(at: int | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")


TABLE: Final[Mapping[str, Operation]] = {
    one.name: one
    for one in (
        Operation(
            name="search_memory", scope="read", arguments=SearchMemory, run=Operations.search,
            description="Find what is remembered of the person, by words and by meaning.",
        ),
        Operation(
            name="list_memories", scope="read", arguments=ListMemories, run=Operations.list_,
            description="List what is remembered of the person, page by page, perhaps only some of it.",
        ),
        Operation(
            name="show_memory", scope="read", arguments=OneMemory, run=Operations.show,
            description="Show one memory with its earlier versions and the messages it was learned from.",
        ),
        Operation(
            name="get_entity", scope="read", arguments=OneEntity, run=Operations.entity,
            description="Show what is remembered of a person, place, project or organisation by its name.",
        ),
        Operation(
            name="remember", scope="write", arguments=RememberText, run=Operations.remember,
            description="Keep a statement that the person wants kept. Only what they said, in their words.",
        ),
        Operation(
            name="correct", scope="write", arguments=CorrectMemory, run=Operations.correct,
            description="Replace what a memory says, because the person said what holds instead.",
        ),
        Operation(
            name="confirm", scope="write", arguments=OneMemory, run=Operations.confirm,
            description="Mark a memory as right, because the person said so. It does not fade any more.",
        ),
        Operation(
            name="forget", scope="write", arguments=OneMemory, run=Operations.ask_to_forget, destructive=True,
            description="Ask the person, in their own chat, whether a memory is to be forgotten. They decide there.",
        ),
        Operation(
            name="pin", scope="write", arguments=PinMemory, run=Operations.pin, tool=False,
            description="Keep a memory from fading, or let it fade again.",
        ),
        Operation(
            name="preview_forget", scope="read", arguments=OneMemory, run=Operations.preview, tool=False,
            description="Show what would go with a memory.",
        ),
        Operation(
            name="erase", scope="write", arguments=EraseMemory, run=Operations.erase, tool=False, destructive=True,
            description="Forget a memory, with every byte of it.",
        ),
    )
}  # fmt: skip
