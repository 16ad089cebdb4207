"""Lists that are leafed through in their message: which page a button turns to, and what it carries for that.

Invariants: a button carries what was asked for, never what was found, so a page shows what the one who presses may
read; what can't be carried whole is not carried at all.
"""

from __future__ import annotations

import re
from base64 import b85decode, b85encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from channels.base import Button
from gateway.commands.call import Asking, Call

List: TypeAlias = Literal["list", "search"]

#: Memories on one page: with their lines cut, it is one message everywhere.
SIZE = 10
#: What a button carries that turns the page: page:list:2, page:list:2:fact, or page:search:2: and a query in base85.
_TURN = re.compile(r"page:(list|search):([1-9][0-9]{0,4})(?::([!-~]{1,50}))?")
#: So long a query can be that the button stays within 64 bytes; a search has no more than five pages.
_QUERY_BYTES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The page a button turns to. `asked` is the part that is listed, or what is searched for."""

    list: List
    page: int
    asked: str


def turned(data: str) -> Turn | None:
    """The page that a button's data stands for; None when it is for something else."""
    match = _TURN.fullmatch(data)
    if match is None:
        return None
    asked = match[3] or ""
    if match[1] == "search":
        query = _unpacked(asked)
        if not query:
            return None
        asked = query
    return Turn(list=cast(List, match[1]), page=int(match[2]), asked=asked)


def turning(call: Call, kind: List, asked: str, *, page: int, pages: int) -> tuple[Button, ...]:
    """The buttons ‹ 2/5 ›, as far as there are such pages.

    None where there is one page, where nothing can be pressed, and where `asked` does not fit into a button.
    """
    packed = _packed(asked) if kind == "search" else asked
    if pages < 2 or packed is None or call.channel is None or not call.channel.capabilities.buttons:
        return ()
    carried = f":{packed}" if packed else ""
    turns = (("‹", page - 1), (f"{page}/{pages}", page), ("›", page + 1))
    return tuple(Button(label=label, data=f"page:{kind}:{to}{carried}") for label, to in turns if 0 < to <= pages)


def turning_by(call: Call, page: int, pages: int, command: Callable[[int], str]) -> tuple[Button, ...]:
    """The same buttons for a command that shows the page it names; none where it fits in no button."""
    turns = (("‹", page - 1), (f"{page}/{pages}", page), ("›", page + 1))
    made = [call.button(label, command(to)) for label, to in turns if 0 < to <= pages]
    return buttons(*made) if pages > 1 and None not in made else ()


async def show(call: Call, lines: Sequence[str], buttons: Sequence[Button] = ()) -> None:
    """Show a page; pressed for, it takes the place of the one before."""
    await call.do(lambda _desk: Asking(text="\n".join(lines), buttons=tuple(buttons)), in_place=True)


def buttons(*made: Button | None) -> tuple[Button, ...]:
    """Those of the buttons that there are."""
    return tuple(one for one in made if one is not None)


def _packed(query: str) -> str | None:
    """A query as a button can carry it; None when it is too long."""
    if len(query) > _QUERY_BYTES:
        return None
    written = query.encode("utf-8", "surrogatepass")
    return b85encode(written).decode("ascii") if len(written) <= _QUERY_BYTES else None


def _unpacked(packed: str) -> str | None:
    try:
        return b85decode(packed).decode("utf-8", "surrogatepass")
    except ValueError:
        return None
