"""Lists whose pages are turned within their message: the page a button turns to, and the data it carries.

Invariants: a button carries the query, never the hits, so a page shows what the person who presses may read. A query
that does not fit into a button whole is not carried at all.
"""

from __future__ import annotations

import re
from base64 import b85decode, b85encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from channels.base import Button
from gateway.commands.call import Asking, Call

List: TypeAlias = Literal["list", "search", "filter"]

#: Memories on one page: with their lines cut, a page fits into one message on every platform.
SIZE = 10
#: Data of a button that turns the page: page:list:2, page:list:2:fact, or page:search:2: or page:filter:2:
#: and a query in base85.
_TURN = re.compile(r"page:(list|search|filter):([1-9][0-9]{0,4})(?::([!-~]{1,50}))?")
#: Longest query, in bytes, with which the button stays within 64 bytes; a search has no more than five pages.
_QUERY_BYTES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTurn:
    """The page a button turns to. `asked` is the part that is listed, or the query or filters as typed."""

    list: List
    page: int
    asked: str


def turned(data: str) -> PageTurn | None:
    match = _TURN.fullmatch(data)
    if match is None:
        return None
    asked = match[3] or ""
    if match[1] != "list":
        query = _unpacked(asked)
        if not query:
            return None
        asked = query
    return PageTurn(list=cast(List, match[1]), page=int(match[2]), asked=asked)


def turning(call: Call, kind: List, asked: str, *, page: int, pages: int) -> tuple[Button, ...]:
    """Returns the buttons ‹ 2/5 › as far as there are such pages; none if the channel or `asked` allows none."""
    packed = asked if kind == "list" else _packed(asked)
    if pages < 2 or packed is None or call.channel is None or not call.channel.capabilities.buttons:
        return ()
    carried = f":{packed}" if packed else ""
    turns = (("‹", page - 1), (f"{page}/{pages}", page), ("›", page + 1))
    return tuple(Button(label=label, data=f"page:{kind}:{to}{carried}") for label, to in turns if 0 < to <= pages)


def turning_by(call: Call, page: int, pages: int, command: Callable[[int], str]) -> tuple[Button, ...]:
    """Returns the page buttons of a command that takes a page number; none if the command is too long for a button."""
    turns = (("‹", page - 1), (f"{page}/{pages}", page), ("›", page + 1))
    made = [call.button(label, command(to)) for label, to in turns if 0 < to <= pages]
    return buttons(*made) if pages > 1 and None not in made else ()


def beyond(call: Call, page: int, pages: int) -> str:
    return call.texts("pages.beyond" if pages > 1 else "pages.only_one", page=page, pages=pages)


async def show(call: Call, lines: Sequence[str], buttons: Sequence[Button] = ()) -> None:
    await call.do(lambda _edits: Asking(text="\n".join(lines), buttons=tuple(buttons)), in_place=True)


def buttons(*made: Button | None) -> tuple[Button, ...]:
    return tuple(button for button in made if button is not None)


def _packed(query: str) -> str | None:
    if len(query) > _QUERY_BYTES:
        return None
    written = query.encode("utf-8", "surrogatepass")
    return b85encode(written).decode("ascii") if len(written) <= _QUERY_BYTES else None


def _unpacked(packed: str) -> str | None:
    try:
        return b85decode(packed).decode("utf-8", "surrogatepass")
    except ValueError:
        return None
