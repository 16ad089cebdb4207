"""Words of messages blanked, with all that their turns kept of them: at once, or when a turn under way has ended.

Invariants: rows that others may point to stay, empty; a turn under way keeps its steps, for it goes on with them; what
its answers are searched for when it has ended is held in memory alone, and where that is lost all of them go.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from memory.store import history
from memory.store.database import Reader, Transaction
from memory.upkeep.forget import Plan, telling_texts
from memory.upkeep.quotes import Quotes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """By what the answers of turns that were under way are known to tell what went; held in memory alone.

    `texts` are looked for everywhere, `values` in turns that were given a memory that went.
    """

    texts: Quotes
    values: Quotes


def blank(tx: Transaction, message_ids: Sequence[int], *, now: int, by_age: bool = False) -> None:
    """Have the words of messages go, with all that their turns kept of them. A turn under way keeps its steps.

    `by_age` as in `history.erase`.
    """
    history.erase(tx, message_ids, now=now, by_age=by_age)
    _clear_turns(tx, _turns_of(tx, message_ids))


def blank_hidden(tx: Transaction, message_ids: Sequence[int], *, now: int) -> None:
    """Have the words go of those of these messages that are out of sight. A second time it changes nothing."""
    rows = tx.all(
        "select id from messages where erased_at is not null and id in (select value from json_each(?))",
        (json.dumps(list(message_ids)),),
    )
    blank(tx, [row["id"] for row in rows], now=now)


def clear_traffic(tx: Transaction, message_ids: Sequence[int], *, now: int) -> bool:
    """Of the turns of these messages only what people have seen stays: their words went, and tools were given them.

    Returns whether there was anything else.
    """
    return _clear_traffic(tx, _turns_of(tx, message_ids), now=now)


def running_turns(reader: Reader, message_ids: Sequence[int]) -> list[int]:
    """Those of the turns of these messages that are under way."""
    rows = reader.all(
        "select id from turns where state = 'running' and id in (select value from json_each(?))",
        (json.dumps(_turns_of(reader, message_ids)),),
    )
    return [row["id"] for row in rows]


def under_way(reader: Reader, sessions: Sequence[int]) -> set[int]:
    """The turns that run in these sessions: what they were given may hold what goes now."""
    rows = reader.all(
        "select id from turns where state = 'running' and session_id in (select value from json_each(?))",
        (json.dumps(list(sessions)),),
    )
    return {row["id"] for row in rows}


def sought_of(reader: Reader, going: Plan) -> Sought:
    """By what answers are known that tell of what goes; read before it does."""
    said = (*going.messages, *going.replies) if going.how == "words" else ()
    told = (*going.memories, *going.derived)
    return Sought(texts=Quotes(telling_texts(reader, told, said)), values=Quotes(memory.value for memory in told))


def finish(tx: Transaction, what: str, *, sought: Sought | None, now: int) -> bool:
    """Have go what turns have brought that were under way when something was erased; False as long as one is.

    Of turns whose own words went all goes, of others beside these what tells of what went: what is `sought`. Where that
    is not known any more, for the process has ended since, all of theirs goes.
    """
    told = json.loads(what)
    running, beside, traffic = (told.get(name, []) for name in ("running", "beside", "traffic"))
    if not (running or beside or traffic):
        return True
    these = json.dumps([*running, *beside, *traffic])
    if tx.one("select 1 from turns where state = 'running' and id in (select value from json_each(?))", (these,)):
        return False
    _clear_traffic(tx, traffic, now=now)
    telling = beside if sought is None else _telling_turns(tx, beside, told["memories"], sought)
    rows = tx.all(
        "select id from messages where role <> 'user' and erased_at is null"
        " and turn_id in (select value from json_each(?))",
        (json.dumps([*running, *telling]),),
    )
    if told["how"] == "memory":
        history.unlearn(tx, [row["id"] for row in rows])
        return True
    blank(tx, [row["id"] for row in rows], now=now)
    _clear_turns(tx, [*running, *telling])
    return True


def _telling_turns(reader: Reader, turn_ids: Sequence[int], memory_ids: Sequence[int], sought: Sought) -> list[int]:
    """The turns of which anything, shown or not, tells what is sought."""
    rows = reader.all(
        "with told (turn_id, text) as ("
        " select turn_id, text || ' ' || ifnull(tool_calls, '') from messages where role <> 'user'"
        "   and turn_id in (select value from json_each(?1))"
        " union all select turn_id, completion from steps where turn_id in (select value from json_each(?1))"
        " union all select turn_id, ifnull(result, '') from effects where turn_id in (select value from json_each(?1))"
        " union all select turn_id, text || ' ' || markup || ' ' || buttons || ' ' || file_name from outbox"
        "   where turn_id in (select value from json_each(?1)))"
        " select turn_id, text, exists (select 1 from recalls r where r.turn_id = t.turn_id and r.item = 'memory'"
        "   and r.item_id in (select value from json_each(?2))) as given from told t",
        (json.dumps(list(turn_ids)), json.dumps(list(memory_ids))),
    )
    telling = {
        row["turn_id"]
        for row in rows
        if sought.texts.stand_in(row["text"]) or (row["given"] and sought.values.stand_in(row["text"]))
    }
    return sorted(telling)


def _turns_of(reader: Reader, message_ids: Sequence[int]) -> list[int]:
    rows = reader.all(
        "select distinct turn_id from messages where turn_id is not null and id in (select value from json_each(?))",
        (json.dumps(list(message_ids)),),
    )
    return [row["turn_id"] for row in rows]


def _clear_traffic(tx: Transaction, turns: Sequence[int], *, now: int) -> bool:
    rows = tx.all(
        "select m.id from messages m join turns t on t.id = m.turn_id where m.role <> 'user' and t.state <> 'running'"
        " and (m.role = 'tool' and m.erased_at is null or m.tool_calls is not null)"
        " and m.turn_id in (select value from json_each(?))",
        (json.dumps(list(turns)),),
    )
    history.erase(tx, [row["id"] for row in rows], now=now)
    return _clear_steps(tx, turns) or bool(rows)


def _clear_turns(tx: Transaction, turn_ids: Sequence[int]) -> None:
    """Drop what turns that have ended kept beside history, and what they have still to show."""
    these = json.dumps(list(turn_ids))
    running = tx.all(
        "select id from turns where state = 'running' and id in (select value from json_each(?))", (these,)
    )
    ended = json.dumps(sorted(set(turn_ids) - {row["id"] for row in running}))
    tx.run("delete from outbox where state <> 'sent' and turn_id in (select value from json_each(?))", (ended,))
    tx.run(
        "update outbox set text = '', markup = '', buttons = '', ticket = '', file_name = '', file = null"
        " where turn_id in (select value from json_each(?)) and (text <> '' or file is not null)",
        (ended,),
    )
    _clear_steps(tx, turn_ids)


def _clear_steps(tx: Transaction, turn_ids: Sequence[int]) -> bool:
    """Drop the model's steps and the tools' results of turns that have ended; whether there were any."""
    ended = (json.dumps(list(turn_ids)),)
    steps = tx.all(
        "delete from steps where turn_id in (select id from turns where state <> 'running'"
        " and id in (select value from json_each(?))) returning turn_id",
        ended,
    )
    effects = tx.all(
        "delete from effects where turn_id in (select id from turns where state <> 'running'"
        " and id in (select value from json_each(?))) returning turn_id",
        ended,
    )
    return bool(steps or effects)
