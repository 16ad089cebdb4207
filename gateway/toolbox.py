"""The tools an agent gets in one turn, built over memory for one scope.

Invariants: a tool sees and writes only the turn's own scope; a tool call of a turn changes memory at most once,
also when the turn is taken up again after a crash; "saved" is a tool's word only after its commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import BaseModel, Field

from agents.tools import Tool
from gateway import phrases
from gateway.texts import Texts
from memory.service import Desk, Service, Turn


class NowArguments(BaseModel):
    """No arguments."""


class SearchArguments(BaseModel):
    query: str = Field(description="what to look for, in the person's own words", min_length=1, max_length=500)


class RememberArguments(BaseModel):
    text: str = Field(description="one statement to keep, as short as it can be", min_length=1, max_length=2_000)
    key: str = Field(default="", description="what it is about, such as home, allergy, likes", max_length=128)


def build(
    names: Sequence[str], *, memory: Service, turn: Turn, texts: Texts, now: Callable[[], int]
) -> tuple[Tool, ...]:
    """The tools called `names`, in that order, for this turn."""

    async def tell_time(_n: int, _i: int, _arguments: NowArguments) -> str:
        return f"{texts.moment(now())} ({texts.timezone})"

    async def search_memory(_n: int, _i: int, arguments: SearchArguments) -> str:
        hits = await memory.search(turn.context, arguments.query, limit=8)
        if not hits:
            return "Nothing in memory matches."
        lines = []
        for hit in hits:
            m = hit.memory
            until = f", until {texts.date(m.valid_until)}" if m.valid_until is not None else ""
            lines.append(f"- {m.key}: {m.value} (told {texts.date(m.learned_at)}{until}) [{m.short_id}]")
        return "\n".join(lines)

    async def remember_fact(n: int, i: int, arguments: RememberArguments) -> str:
        def act(desk: Desk) -> str:
            kept = desk.remember(arguments.text, key=arguments.key or None)
            if not kept:
                return "Not saved: there is nothing in it to keep."
            said = [f"{phrases.say(m.key, m.value, language='en')} [{m.short_id}]" for m in kept]
            return "Saved: " + "; ".join(said)

        return await memory.act(turn, n, i, "remember_fact", act)

    tools: Mapping[str, Tool] = {
        "now": Tool(
            name="now",
            description="The date and time where the person lives.",
            arguments=NowArguments,
            run=tell_time,
        ),
        "search_memory": Tool(
            name="search_memory",
            description="Look something up in what this person has told you, with the dates they told it.",
            arguments=SearchArguments,
            run=search_memory,
        ),
        "remember_fact": Tool(
            name="remember_fact",
            description="Keep one statement about the person because they asked you to remember it.",
            arguments=RememberArguments,
            run=remember_fact,
        ),
    }
    return tuple(tools[name] for name in names)
