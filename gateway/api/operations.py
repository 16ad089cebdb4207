"""The actions on memories for programs: paths of the memory API to actions, in the shapes that mem0's clients know.

Invariants: a memory that a program writes names its source: a message of its person,
"through" the program. Text is masked before it is kept. A tool can't forget: it raises a question in the person's own
chat, and only they answer it. A body's members that name a person, an agent or a run are not
looked at: the key says whose memory it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from channels.api import API
from channels.base import Channel, Inbound, Place
from gateway.actions.memory import (
    ACTIONS,
    MASK,
    Action,
    Arguments,
    CorrectMemory,
    EraseMemory,
    ListMemories,
    NothingKept,
    OneEntity,
    OneMemory,
    RememberText,
    ToForget,
)
from gateway.api.callers import ApiRefusal, Caller, said, thread_of
from gateway.api.wire import JSON
from gateway.pipeline.course import Agent
from gateway.pipeline.delivery import pieces
from gateway.pipeline.questions import buttons
from gateway.pipeline.store import Roster, Store, where_said
from gateway.wording import phrases
from gateway.wording.texts import REFUSALS, Texts, spoken
from memory.browse.browse import About, Shelf
from memory.browse.why import Shown
from memory.context import Context
from memory.errors import NotFound, UnknownFilter, UnreadFilter
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import ForgetPreview
from memory.mailbox.outbox import Part
from memory.recall.recall import excerpt
from memory.recall.search import Hit
from memory.service import Service
from memory.store.memories import Memory, tags_seen

#: The conversation that holds the sources of memories which programs write.
_DESK: Final = "memory"
_NOT_KEPT: Final = (
    "Not saved: there is nothing in it to keep, or the person wants nothing learned. What they type behind /remember in"
    " a chat is kept."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRequest:
    caller: Caller
    served: Agent
    store: Store
    context: Context
    texts: Texts

    @property
    def memory(self) -> Service:
        return self.store.memory


class Operations:
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
        action = OFFERED.get(name)
        if action is None:
            raise ApiRefusal(404, "not_found", f"There is no operation {name!r}.")
        caller.needs(action.needs)
        arguments = _read(action, given)
        asking = await self._asking(caller)
        try:
            match name:
                case "forget":
                    return await self._ask_to_forget(asking, action, arguments)
                case "erase":
                    assert isinstance(arguments, EraseMemory)
                    return await self._erase(asking, arguments, await self._result(asking, action, arguments))
            return _TOLD[name](asking, arguments, await self._result(asking, action, arguments))
        except NothingKept:
            return {"results": [], "note": _NOT_KEPT}
        except (UnknownFilter, UnreadFilter) as exc:
            raise ApiRefusal(400, "invalid_filter", asking.texts.unread(exc), param="filter") from exc
        except REFUSALS as exc:
            text = asking.texts.refusal(str(given.get("id", "")), exc)
            raise ApiRefusal(404 if isinstance(exc, NotFound) else 409, exc.code, text) from exc

    async def _asking(self, caller: Caller) -> MemoryRequest:
        default = self._roster.default
        name = next(
            (agent for agent in (default, *self._roster.stores) if caller.store in (None, self._roster.stores[agent])),
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

    async def _result(self, asking: MemoryRequest, action: Action, given: Arguments) -> Any:
        if action.reads:
            return await action.run(asking.memory, asking.context, given)
        if given.words:
            given = given.model_copy(update={given.OWN_WORDS: self._mask(given.words)})
        name = asking.texts("keys.through", name=asking.caller.name, label=asking.caller.through)
        return await asking.memory.requests.run(
            asking.context, lambda edits: action.run(edits, given), said=given.words, author=name
        )

    async def _erase(self, asking: MemoryRequest, given: EraseMemory, memory: Memory) -> JSON:
        """Forgets a memory at once, for a program of the person's own; a crash on the way is reported as in a chat."""
        inbound = self._inbound(asking.caller, asking.served, f"/forget {memory.short_id}")
        inbox_id = await asking.memory.mailbox.receive(
            platform=API, bot_id=API, update_key=inbound.update_key, session_key=inbound.place.session_key,
            payload=inbound.to_json(),
        )  # fmt: skip
        assert inbox_id is not None, "its key is new"
        selection = Selection(what="memories", memory_ids=(memory.id,))
        receipt = await asking.memory.forgetting.forget(asking.context, inbox_id, None, selection, given.how)
        await asking.memory.mailbox.dismiss(inbox_id)
        assert receipt is not None, "no question could be over"
        return {
            "event": "DELETE", "memories": receipt.memories, "derived": receipt.derived, "messages": receipt.messages,
            "replies": receipt.replies, "reminders": receipt.reminders, "naming": receipt.naming,
            "scrubbed": receipt.scrubbed, "backups_until": _date(receipt.backups_until),
        }  # fmt: skip

    async def _ask_to_forget(self, asking: MemoryRequest, action: Action, given: Arguments) -> JSON:
        holder = asking.caller.holder
        platform, user_id = (
            (holder.account.platform, holder.account.user_id) if holder else (API, asking.caller.user_id)
        )
        theirs = await asking.memory.identities.whose(platform, user_id, private=True)
        if theirs is None:
            raise ApiRefusal(409, "no_chat", "The person has no private chat in which they could be asked.")
        texts = Texts(spoken(theirs.speaker.language, asking.served.spec.language), theirs.timezone)

        def ask(asked: ToForget) -> tuple[Part, ...]:
            assert isinstance(given, OneMemory)
            text = asked.text(texts, theirs, given)
            channel = self._channels.get(Place.from_session_key(theirs.session.key).channel)
            through = texts("keys.asks", label=asking.caller.through)
            return pieces(channel, f"{through}\n{text}", buttons=buttons(asked.question, texts, alone=True))

        await asking.memory.requests.run(theirs, lambda edits: action.run(edits, given), tell=ask)
        asking.store.delivery.wake(theirs.session.key)
        return {"asked": True, "note": "Nothing is forgotten yet. The person is asked in their own chat, and decides."}


def _read(action: Action, given: Mapping[str, Any]) -> Arguments:
    """Returns the arguments of an action. Raises `ApiRefusal` if they don't fit; an unknown one is a mistake."""
    if unknown := [name for name in given if name not in action.arguments.model_fields]:
        raise ApiRefusal(400, "invalid_request", f"{unknown[0][:80]}: there is no such field.", param=unknown[0][:80])
    try:
        return action.arguments.model_validate(given)
    except ValidationError as exc:
        problem = exc.errors(include_url=False, include_input=False)[0]
        at = ".".join(str(step) for step in problem["loc"])
        raise ApiRefusal(400, "invalid_request", f"{at or 'arguments'}: {problem['msg']}", param=at or None) from exc


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
        "tags": list(tags_seen(memory, asking.context.scope)),
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
        {
            "said_at": _date(source.said_at),
            "by": source.author_name,
            "own": source.author_id in mine,
            "text": source.text,
        }
        for source in shown.sources
    ]


def _date(at: int | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")


def _listed(asking: MemoryRequest, given: ListMemories, shelf: Shelf) -> JSON:
    # A program that turns pages until one is empty must not get the last page for ever.
    rows = shelf.memories if (given.page - 1) * given.limit < shelf.total else ()
    return {"results": [told(asking, row) for row in rows], "count": shelf.total, "page": given.page}


def _in_full(asking: MemoryRequest, _given: OneMemory, shown: Shown) -> JSON:
    history = [told(asking, row) for row in shown.versions]
    return {**told(asking, shown.memory), "history": history, "sources": _sources(asking, shown)}


def _about(asking: MemoryRequest, given: OneEntity, about: About | None) -> JSON:
    if about is None:
        raise ApiRefusal(404, "not_found", f"Nothing is known here of {given.name!r}.")
    entity = about.entity
    return {
        "name": entity.name, "type": entity.type, "aliases": list(entity.aliases), "mentions": entity.mentions,
        "memories": [told(asking, row) for row in about.memories],
    }  # fmt: skip


def _would_go(asking: MemoryRequest, _given: OneMemory, preview: ForgetPreview) -> JSON:
    return {
        "memories": [told(asking, row) for row in preview.shown], "messages": preview.messages,
        "replies": preview.replies, "staying": preview.staying, "naming": preview.naming,
        "quoted": list(preview.quoted), "reminders": list(preview.reminders),
    }  # fmt: skip


def _kept(asking: MemoryRequest, _given: RememberText, kept: Sequence[Memory]) -> JSON:
    return {"results": [{**told(asking, row), "event": "ADD"} for row in kept], **_masked(asking, kept)}


def _corrected(asking: MemoryRequest, _given: CorrectMemory, versions: tuple[Memory, Memory]) -> JSON:
    old, new = versions
    event = "NONE" if old is new else "UPDATE"
    return {**told(asking, new), "event": event, "replaces": old.short_id, **_masked(asking, [new])}


def _masked(asking: MemoryRequest, kept: Sequence[Memory]) -> JSON:
    return {"note": asking.texts("remember.masked")} if any(MASK in row.value for row in kept) else {}


#: The result of each action as programs get it; the two that take more than one transaction tell it themselves.
_TOLD: Final[Mapping[str, Callable[[MemoryRequest, Any, Any], JSON]]] = {
    "search_memory": lambda asking, given, hits: {"results": [_found(asking, hit, given.query) for hit in hits]},
    "list_memories": _listed,
    "show_memory": _in_full,
    "get_entity": _about,
    "preview_forget": _would_go,
    "remember": _kept,
    "correct": _corrected,
    "confirm": lambda asking, _given, memory: told(asking, memory),
    "pin": lambda asking, _given, memory: told(asking, memory),
    "tag": lambda asking, _given, memory: told(asking, memory),
}
#: The actions that programs have.
OFFERED: Final = {name: action for name, action in ACTIONS.items() if name in {*_TOLD, "forget", "erase"}}


_ID: Final = "(?P<id>[A-Za-z0-9_]{1,20})"
#: The fields that mem0's clients send with a request and that mean nothing here.
_BESIDE: Final = frozenset(
    {"user_id", "agent_id", "app_id", "run_id", "metadata", "infer", "version", "output_format", "org_id", "project_id",
     "async_mode", "page_size"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRoute:
    method: str
    path: str
    operation: str
    summary: str
    given: Callable[[JSON], JSON] = dict


def _added(body: JSON) -> JSON:
    messages = body.pop("messages", None)
    if isinstance(messages, str):
        return {**body, "text": messages}
    if isinstance(messages, list):
        own = [one.get("content") for one in messages if isinstance(one, dict) and one.get("role", "user") == "user"]
        return {**body, "text": "\n".join(text for text in own if isinstance(text, str))}
    return body


def _sought(body: JSON) -> JSON:
    if "top_k" in body:
        body["limit"] = body.pop("top_k")
    body.pop("filters", None)
    return body


def _changed(body: JSON) -> JSON:
    if "text" in body:
        body["value"] = body.pop("text")
    return body


ROUTES: Final = (
    MemoryRoute(method="GET", path="/v1/memories", operation="list_memories", summary="List memories"),
    MemoryRoute(method="POST", path="/v1/memories", operation="remember", summary="Keep a statement", given=_added),
    MemoryRoute(
        method="POST", path="/v1/memories/search", operation="search_memory", summary="Search memory", given=_sought
    ),
    MemoryRoute(method="GET", path="/v1/memories/{id}", operation="show_memory", summary="One memory in full"),
    MemoryRoute(method="PUT", path="/v1/memories/{id}", operation="correct", summary="Correct it", given=_changed),
    MemoryRoute(method="PATCH", path="/v1/memories/{id}", operation="pin", summary="Pin it, or end that"),
    MemoryRoute(method="DELETE", path="/v1/memories/{id}", operation="erase", summary="Forget it, every byte"),
    MemoryRoute(
        method="GET", path="/v1/memories/{id}/forget", operation="preview_forget", summary="What would go with it"
    ),
    MemoryRoute(method="POST", path="/v1/memories/{id}/confirm", operation="confirm", summary="Mark it as right"),
    MemoryRoute(method="POST", path="/v1/memories/{id}/tags", operation="tag", summary="Tag it, or take tags away"),
    MemoryRoute(method="GET", path="/v1/entities", operation="get_entity", summary="What is known of a name"),
)


def is_memory(path: str) -> bool:
    return path.startswith(("/v1/memories", "/v1/entities"))


def check_route(method: str, path: str) -> None:
    """Raises `ApiRefusal` unless there is a way into the memory API for a method and a path."""
    _route(method, path)


def wanted(method: str, path: str, query: Mapping[str, str], body: JSON) -> tuple[str, JSON]:
    """Returns the operation that a request asks for, with its arguments. Raises `ApiRefusal`."""
    route, parts = _route(method, path)
    plain = {name: value for name, value in {**query, **body}.items() if name not in _BESIDE}
    return route.operation, {**_typed(route, route.given(plain)), **parts}


def _route(method: str, path: str) -> tuple[MemoryRoute, dict[str, str]]:
    path, allowed = path.rstrip("/"), []
    for route in ROUTES:
        parts = re.fullmatch(route.path.replace("{id}", _ID), path)
        if parts is None:
            continue
        if route.method == method:
            return route, parts.groupdict()
        allowed.append(route.method)
    if allowed:
        raise ApiRefusal(405, "method_not_allowed", f"{path} takes {', '.join(allowed)}.")
    raise ApiRefusal(404, "not_found", f"There is nothing at {path[:200]}.")


def _typed(route: MemoryRoute, given: JSON) -> JSON:
    fields = OFFERED[route.operation].arguments.model_fields
    return {
        name: int(value) if name in fields and fields[name].annotation is int and _is_number(value) else value
        for name, value in given.items()
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10
