"""Blanks the words of messages and everything their turns kept of them, at once or when a running turn has ended.

Invariants: rows that others may point to stay, empty. A running turn keeps its steps, because it goes on with them. Its
answers are searched for forgotten texts when it has ended; these texts are held only in memory, and if they are lost,
all of its answers go.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from memory.forgetting import forgettable
from memory.forgetting.plan import Plan, Quotes, telling_texts
from memory.mailbox import outbox
from memory.store import history
from memory.store.database import Reader, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """The texts by which answers of running turns that tell something forgotten are recognised; held only in memory.

    `texts` are looked for in every turn, `values` only in turns that were given a forgotten memory.
    """

    texts: Quotes
    values: Quotes


def blank(tx: Transaction, message_ids: Sequence[int], *, now: int, by_age: bool = False) -> None:
    """Blanks the words of messages and everything their turns kept of them. A running turn keeps its steps.

    For `by_age` see `history.erase`.
    """
    history.erase(tx, message_ids, now=now, by_age=by_age)
    _clear_turns(tx, history.turns_of(tx, message_ids))


def blank_hidden(tx: Transaction, message_ids: Sequence[int], *, now: int) -> None:
    """Blanks the words of the messages that are hidden. A second call changes nothing."""
    blank(tx, sorted(set(message_ids) - forgettable.with_words(tx, message_ids)), now=now)


def clear_traffic(tx: Transaction, message_ids: Sequence[int], *, now: int) -> bool:
    """Reduces the messages' turns to the parts that people have seen, because tools were given words that are gone.

    Returns whether there was anything else to erase.
    """
    return _clear_traffic(tx, history.turns_of(tx, message_ids), now=now)


def running_turns(reader: Reader, message_ids: Sequence[int]) -> list[int]:
    return sorted(history.running_turns(reader, history.turns_of(reader, message_ids)))


def sought_of(reader: Reader, going: Plan) -> Sought:
    """Returns the texts by which answers that tell something forgotten are recognised. Call it before the erasing."""
    said = (*going.messages, *going.replies) if going.how == "words" else ()
    told = (*going.memories, *going.derived)
    return Sought(texts=Quotes(telling_texts(reader, told, said)), values=Quotes(memory.value for memory in told))


def finish(tx: Transaction, what: str, *, sought: Sought | None, now: int) -> bool:
    """Erases the products of turns that ran during an erasure. Returns False while one of them is still running.

    If a turn's own words were erased, everything it produced goes. In turns that ran beside it, texts that tell of the
    erased rows go, as `sought` identifies them. If `sought` is lost because the process has ended since, everything
    those turns produced goes.
    """
    told = json.loads(what)
    running, beside, traffic = (told.get(name, []) for name in ("running", "beside", "traffic"))
    if not (running or beside or traffic):
        return True
    if history.running_turns(tx, [*running, *beside, *traffic]):
        return False
    _clear_traffic(tx, traffic, now=now)
    telling = beside if sought is None else _telling_turns(tx, beside, told["memories"], sought)
    answers = forgettable.answers_in(tx, [*running, *telling])
    if told["how"] == "memory":
        history.unlearn(tx, answers)
        return True
    blank(tx, answers, now=now)
    _clear_turns(tx, [*running, *telling])
    return True


def _telling_turns(reader: Reader, turn_ids: Sequence[int], memory_ids: Sequence[int], sought: Sought) -> list[int]:
    rows = forgettable.told_in(reader, turn_ids, memory_ids)
    telling = {
        row["turn_id"]
        for row in rows
        if sought.texts.stand_in(row["text"]) or (row["given"] and sought.values.stand_in(row["text"]))
    }
    return sorted(telling)


def _clear_traffic(tx: Transaction, turn_ids: Sequence[int], *, now: int) -> bool:
    traffic = forgettable.tool_traffic(tx, turn_ids)
    history.erase(tx, traffic, now=now)
    return history.drop_steps(tx, _ended(tx, turn_ids)) or bool(traffic)


def _clear_turns(tx: Transaction, turn_ids: Sequence[int]) -> None:
    """Deletes the data that ended turns kept beside history, and the messages that they have yet to show."""
    ended = _ended(tx, turn_ids)
    outbox.drop_of_turns(tx, ended)
    history.drop_steps(tx, ended)


def _ended(reader: Reader, turn_ids: Sequence[int]) -> list[int]:
    return sorted(set(turn_ids) - history.running_turns(reader, turn_ids))
