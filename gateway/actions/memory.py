"""The actions on memories: one table for chats, the page, programs and the tools of agents.

A row names an action, its arguments, the permission that a program's key needs, and what it is for. A door reads the
arguments, gives the action its transaction, and renders what it returns: `gateway/commands` in a chat and for the forms
of the page, `gateway/api` for the memory API and the server of tools, `gateway/pipeline/toolbox.py` for an agent.

Invariants: no argument names a person, because the context says whose memory it is. A change is a plain function inside
the transaction that commits its answer. A refusal is a `MemoryFault`, and `Texts.refusal` has its words for every door.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, get_args

from pydantic import BaseModel, Field, StringConstraints, model_validator
from pydantic.json_schema import SkipJsonSchema

from gateway.wording import phrases
from gateway.wording.texts import Texts, part_of
from memory import keys
from memory.browse.browse import LISTED, TIERS, Shelf
from memory.chat.edits import Edits
from memory.context import Context
from memory.errors import MemoryFault, NotFound
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import ForgetPreview
from memory.people.keyring import KeyScope
from memory.recall.search import Hit
from memory.service import Service
from memory.store.memories import Kind, Memory
from memory.store.questions import Question
from memory.typed_filters import Filters
from memory.typed_filters import Name as FilterName

#: The purpose of the stored question whether to forget.
FORGET: Final = "forget"
#: The answer with which a person asks for the next page of what would go.
MORE: Final = "more"
#: The beginning of the mark in the place of a secret: whoever has a secret kept must hear that only the mark is.
MASK: Final = "[secret: "
#: The id by which a model names a recalled message, and the characters that are quoted of it.
_SAID: Final = re.compile(r"s_(\d{1,18})")
_QUOTED: Final = 200


class NothingKept(MemoryFault):
    """A statement holds nothing to keep, or the person wants nothing learned."""

    code = "nothing_kept"


class Arguments(BaseModel):
    """The arguments of an action. `OWN_WORDS` names the field that holds what the person said."""

    OWN_WORDS: ClassVar[str] = ""

    @property
    def words(self) -> str:
        return str(getattr(self, self.OWN_WORDS)) if self.OWN_WORDS else ""


class NoArguments(Arguments):
    pass


class SearchMemory(Arguments):
    query: str = Field(
        default="",
        description="what to look for, in the person's own words; may be empty with a filter",
        max_length=500,
    )
    #: The model is not told of it: a topic covers it, and each word of a tool takes its share of a small context.
    category: SkipJsonSchema[str] = Field(default="", max_length=40)
    topic: str = Field(default="", description="only of this topic or category", max_length=80)
    key: str = Field(default="", description="only facts of this key: home", max_length=128)
    about: str = Field(default="", description="only about this person or thing", max_length=200)
    place: str = Field(default="", description="only about this place", max_length=200)
    since: str = Field(default="", description="only told since then: 2026-05, last week", max_length=80)
    until: str = Field(default="", description="only told until then", max_length=80)
    on: str = Field(default="", description="only told then: yesterday", max_length=80)

    @property
    def most(self) -> int:
        return 8

    @property
    def filters(self) -> str:
        given = {name: getattr(self, name, "").replace('"', " ").strip() for name in get_args(FilterName)}
        return " ".join(f'{name}:"{value}"' for name, value in given.items() if value)

    @model_validator(mode="after")
    def _asks(self) -> SearchMemory:
        if not (self.query.strip() or self.filters):
            raise ValueError("Say what to look for, or give a filter.")
        return self


class SearchSome(SearchMemory):
    category: str = Field(default="", description="only facts of this category: health", max_length=40)
    tag: str = Field(default="", description="only what they tagged so", max_length=80)
    limit: int = Field(default=8, ge=1, le=50, description="the most results")

    @property
    def most(self) -> int:
        return self.limit


class ListMemories(Arguments):
    filter: str = Field(
        default="", max_length=500, description="only some, such as topic:roof since:march about:Miriam category:health"
    )
    page: int = Field(default=1, ge=1, le=10_000, description="the page, from 1")
    limit: int = Field(default=20, ge=1, le=100, description="memories on a page")


class OneMemory(Arguments):
    id: str = Field(description="the id of the memory, such as m_7k2pq4", min_length=1, max_length=20)


class OneEntity(Arguments):
    name: str = Field(description="a person, place, project or organisation", min_length=1, max_length=200)


class RememberText(Arguments):
    OWN_WORDS = "text"
    text: str = Field(description="one statement to keep, as short as it can be", min_length=1, max_length=2_000)
    key: str = Field(default="", description="what it is about, such as home, allergy, likes", max_length=128)


class CorrectMemory(OneMemory):
    OWN_WORDS = "value"
    value: str = Field(
        title="new text", description="what holds instead, as short as it can be", min_length=1, max_length=2_000
    )


class PinMemory(OneMemory):
    pinned: bool = Field(description="true: it never fades")


class TagMemory(OneMemory):
    tags: list[Annotated[str, StringConstraints(min_length=1, max_length=keys.TAG_LIMIT)]] = Field(
        description="words by which it is to be found", min_length=1, max_length=keys.TAGS_LIMIT
    )
    tagged: bool = Field(default=True, description="false: take these tags away")


class EraseMemory(OneMemory):
    how: Literal["words", "memory"] = Field(
        default="words", description="words: with the messages it was learned from; memory: the memory alone"
    )


@dataclass(frozen=True, slots=True)
class Action:
    """A row of the table.

    `run` takes `(Edits, arguments)` in a transaction or, where it `reads`, is awaited with `(Service, Context,
    arguments)`. `tool` is its name among an agent's tools, "" if agents have none, and `tool_arguments` are fewer where
    each costs tokens. The server of tools offers it if `served`. A `destructive` action may lose something for ever.
    """

    name: str
    arguments: type[Arguments]
    needs: KeyScope
    run: Callable[..., Any]
    _: KW_ONLY
    purpose: str
    reads: bool = False
    tool: str = ""
    tool_arguments: type[Arguments] | None = None
    served: bool = True
    destructive: bool = False


def kinds(filters: Filters) -> Sequence[Kind]:
    """Returns the kinds that are listed: derived kinds only if a filter names a category."""
    named = any(given.name == "category" for given in filters.given)
    return [kind for tier in TIERS.values() for kind in tier] if named else LISTED


async def search(memory: Service, context: Context, given: SearchMemory) -> list[Hit]:
    """Returns hits or, without words to look for, the memories that meet the filters. Raises `UnreadFilter`."""
    filters = await memory.browse.filters(context, given.filters, group_of=part_of)
    if query := given.query.strip():
        return await memory.browse.search(context, query, limit=given.most, filters=replace(filters, words=query))
    shelf = await memory.browse.shelf(context, kinds(filters), filters=filters, limit=given.most, page=1)
    return [Hit(score=1.0, memory=row) for row in shelf.memories]


async def listing(memory: Service, context: Context, given: ListMemories) -> Shelf:
    """Returns a page of memories. Raises `UnknownFilter` and `UnreadFilter`."""
    filters = await memory.browse.filters(context, given.filter, group_of=part_of)
    return await memory.browse.shelf(context, kinds(filters), filters=filters, limit=given.limit, page=given.page)


async def preview(memory: Service, context: Context, given: OneMemory) -> ForgetPreview:
    """Returns what would go with a memory. Raises `NotFound`."""
    shown = await memory.forgetting.preview(context, given.id)
    if shown is None:
        raise NotFound(given.id)
    return shown


def remember(edits: Edits, given: RememberText) -> list[Memory]:
    """Keeps a statement, under its key or as its words are read. Raises `NothingKept`."""
    kept = edits.remember(given.text, key=given.key or None)
    if not kept:
        raise NothingKept("There is nothing in it to keep.")
    return kept


class ToForget(NamedTuple):
    """A question whether a memory, or a message with these `words`, is to be forgotten."""

    question: Question
    memory: Memory | None
    words: str = ""

    def text(self, texts: Texts, context: Context, given: OneMemory) -> str:
        said = self.words if self.memory is None else phrases.tell(self.memory, context, language=texts.language)
        how = "forget.one_how" if "memory" in self.question.choices else "forget.whether"
        return f"{texts('forget.one', id=given.id, said=said)}\n{texts(how)}"


def ask_how(edits: Edits, meant: Selection, *, memories: int, page: int = 1, more: bool = False) -> Question:
    """Asks how to forget: with the words or the memory alone; only whether to forget if no memory goes.

    With `more`, the person may also ask for the memories after this `page` of them.
    """
    choices = ("words", "memory", "no") if memories else ("yes", "no")
    offered = (*choices, MORE) if more else choices
    return edits.ask(FORGET, meant.fields() | {"page": page}, choices=offered, preset=choices[0])


def ask_to_forget(edits: Edits, given: OneMemory) -> ToForget:
    """Asks whether a memory or a message is to be forgotten. Only the person's answer forgets anything."""
    if (said := _SAID.fullmatch(given.id)) is not None:
        message, taught = edits.may_forget_said(int(said[1]))
        meant = Selection(what="memories", memory_ids=taught, message_ids=(message.id,))
        memory, words = None, textwrap.shorten(message.text, _QUOTED, placeholder=" …")
    else:
        memory, words = edits.may_forget(given.id), ""
        meant = Selection(what="memories", memory_ids=(memory.id,))
    return ToForget(ask_how(edits, meant, memories=len(meant.memory_ids)), memory, words)


_ROWS: Final = (
    Action(
        "search_memory", SearchSome, "read", search, reads=True, tool="search_memory", tool_arguments=SearchMemory,
        purpose="Look something up in what this person has told you and in what was said, with dates.",
    ),
    Action(
        "list_memories", ListMemories, "read", listing, reads=True,
        purpose="List what is remembered of the person, page by page, perhaps only some of it.",
    ),
    Action(
        "show_memory", OneMemory, "read", lambda edits, given: edits.show(given.id),
        purpose="Show one memory with its earlier versions and the messages it was learned from.",
    ),
    Action(
        "get_entity", OneEntity, "read", lambda memory, context, given: memory.browse.entity(context, given.name),
        reads=True, tool="get_entity_info",
        purpose="What is known of a person, place, project or organisation by name.",
    ),
    Action(
        "memory_stats", NoArguments, "read", lambda memory, context, _given: memory.stats.stats(context),
        reads=True, tool="memory_stats", served=False,
        purpose="How much is remembered here, and of which kinds.",
    ),
    Action(
        "preview_forget", OneMemory, "read", preview, reads=True, served=False,
        purpose="Show what would go with a memory.",
    ),
    Action(
        "remember", RememberText, "write", remember, tool="remember_fact",
        purpose="Keep one statement about the person because they asked you to remember it.",
    ),
    Action(
        "correct", CorrectMemory, "write", lambda edits, given: edits.correct(given.id, given.value),
        tool="correct_fact",
        purpose="Put something else in the place of a memory because the person says it is wrong or has changed.",
    ),
    Action(
        "confirm", OneMemory, "write", lambda edits, given: edits.confirm(given.id), tool="confirm_fact",
        purpose="Mark a memory as confirmed because the person says it is right; it then never fades.",
    ),
    Action(
        "pin", PinMemory, "write", lambda edits, given: edits.pin(given.id, pinned=given.pinned), served=False,
        purpose="Keep a memory from fading, or let it fade again.",
    ),
    Action(
        "tag", TagMemory, "write", lambda edits, given: edits.tag(given.id, given.tags, tagged=given.tagged),
        served=False, purpose="Give a memory tags by which it is found, or take them away.",
    ),
    Action(
        FORGET, OneMemory, "write", ask_to_forget, tool="forget_fact", destructive=True,
        purpose="Ask the person whether a memory or recalled message shall be forgotten, because they want it gone.",
    ),
    # What may go is looked up here; what erases it takes transactions of its own.
    Action(
        "erase", EraseMemory, "write", lambda edits, given: edits.may_forget(given.id), served=False, destructive=True,
        purpose="Forget a memory, with every byte of it.",
    ),
)  # fmt: skip
#: Every action on memories by its name.
ACTIONS: Final = {row.name: row for row in _ROWS}


def typed(edits: Edits, name: str, **arguments: Any) -> Any:
    """Does what a person has typed in a chat, within the bounds of their message rather than those of arguments."""
    return ACTIONS[name].run(edits, ACTIONS[name].arguments.model_construct(**arguments))


def syntax(name: str, **given: object) -> str:
    """Returns the arguments of an action as help shows them, "<id> <new text>", but for those that are `given`."""
    fields = ACTIONS[name].arguments.model_fields.items()
    return " ".join(f"<{each.title or field}>" for field, each in fields if each.is_required() and field not in given)
