"""The latest lines of groups that were not said to the bot, as context for its next answer there.

Invariants: lines are kept in RAM only, masked, few for each place and for an hour. Nothing is learned from them. Edits
and deletions reach them, and so does their author's wish to forget something.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from channels.base import Inbound
from gateway.reading.attachments import forward_label

#: The most lines of one place, the most characters of one line, the most places, and how long a line is kept.
_LINES: Final = 20
_CHARS: Final = 500
_PLACES: Final = 1_000
_KEPT_MS: Final = 60 * 60_000
#: The most characters of a line that are searched for secrets and shown.
_READ: Final = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheard:
    """A line of a person; `source` is the label of a line that another person said first, and that they forward."""

    user_id: str
    name: str
    text: str
    message_id: str
    said_at: int
    source: str = ""


class Observed:
    """The latest lines of each place, by its session key. `mask` removes secrets; `now` returns milliseconds UTC."""

    def __init__(self, mask: Callable[[str], str], now: Callable[[], int]) -> None:
        self._mask = mask
        self._now = now
        self.places: OrderedDict[str, deque[Overheard]] = OrderedDict()

    def hear(self, inbound: Inbound) -> None:
        text = self._shown(inbound.text)
        if not text:
            return
        self._drop_old()
        key = inbound.place.session_key
        lines = self.places.setdefault(key, deque(maxlen=_LINES))
        self.places.move_to_end(key)
        if len(self.places) > _PLACES:
            self.places.popitem(last=False)
        lines.append(
            Overheard(
                user_id=inbound.author_id,
                name=self._mask(inbound.author_name),
                text=text,
                message_id=inbound.message_id,
                said_at=inbound.sent_at,
                source=self._mask(forward_label(inbound)),
            )
        )

    def lines(self, key: str) -> tuple[Overheard, ...]:
        """Returns the lines of a place that are not too old, the oldest first."""
        self._keep(key, (line for line in self.places.get(key, ()) if self._now() - line.said_at < _KEPT_MS))
        return tuple(self.places.get(key, ()))

    def reword(self, edit: Inbound) -> None:
        key, text = edit.place.session_key, self._shown(edit.text)
        was = (edit.message_id, edit.author_id)
        edited = (
            replace(line, text=text) if (line.message_id, line.user_id) == was else line
            for line in self.places.get(key, ())
        )
        self._keep(key, (line for line in edited if line.text))

    def remove(self, key: str, message_ids: Collection[str]) -> None:
        self._keep(key, (line for line in self.places.get(key, ()) if line.message_id not in message_ids))

    def forget(self, inbound: Inbound) -> None:
        for key in [key for key in self.places if key.startswith(f"{inbound.channel}:")]:
            self._keep(key, (line for line in self.places[key] if line.user_id != inbound.author_id))

    def _drop_old(self) -> None:
        """Removes the lines of places that have long been silent; the places stand in the order of their last lines."""
        while self.places and not self.lines(next(iter(self.places))):
            pass  # `lines` removes a place that has none left

    def _keep(self, key: str, lines: Iterable[Overheard]) -> None:
        kept = deque(lines, maxlen=_LINES)
        if kept:
            self.places[key] = kept
        else:
            self.places.pop(key, None)

    def _shown(self, text: str) -> str:
        masked = " ".join(self._mask(text[:_READ]).split())
        return masked if len(masked) <= _CHARS else f"{masked[:_CHARS]}…"
