"""Judgements: what people think of an answer, as they show by a reaction to it.

Invariants: an account judges an answer once, and its last judgement counts. A judgement is ids and a yes or no, never
words. It goes with the answer's words, with the account, and when it is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.store.database import Reader, Row, Transaction


def keep(tx: Transaction, turn_id: int, identity_id: int, *, good: bool, now: int) -> None:
    """Keeps a judgement of the answer of a turn, unless that answer has been forgotten."""
    tx.run(
        "insert into judgements (turn_id, identity_id, good, judged_at) select t.id, ?2, ?3, ?4 from turns t"
        " where t.id = ?1 and (t.state = 'running' or exists (select 1 from messages m where m.turn_id = t.id"
        " and m.role = 'assistant' and m.erased_at is null))"
        " on conflict (turn_id, identity_id) do update set good = excluded.good, judged_at = excluded.judged_at",
        (turn_id, identity_id, int(good), now),
    )


def take_back(tx: Transaction, turn_id: int, identity_id: int, *, good: bool) -> None:
    tx.run(
        "delete from judgements where turn_id = ? and identity_id = ? and good = ?", (turn_id, identity_id, int(good))
    )


def of_turn(reader: Reader, turn_id: int) -> tuple[int, int]:
    """Returns how many people liked the answer of a turn, and how many did not."""
    goods = [row["good"] for row in reader.all("select good from judgements where turn_id = ?", (turn_id,))]
    return goods.count(1), goods.count(0)


def of_person(reader: Reader, session_id: int, identity_id: int, *, most: int) -> list[Row]:
    """Returns the last answers of a conversation that an account has judged: id, tokens, good and judged_at."""
    return reader.all(
        "select m.id, m.tokens, j.good, j.judged_at from judgements j join messages m on m.turn_id = j.turn_id"
        " where j.identity_id = ? and m.session_id = ? and m.role = 'assistant' and m.tool_calls is null"
        " and m.erased_at is null order by m.id desc limit ?",
        (identity_id, session_id, most),
    )


def drop_of_answers(tx: Transaction, message_ids: Sequence[int]) -> None:
    """Deletes the judgements of the answers among these messages. Calls of tools are no answers."""
    tx.run(
        "delete from judgements where turn_id in (select turn_id from messages where role = 'assistant'"
        " and tool_calls is null and id in (select value from json_each(?)))",
        (message_ids,),
    )


def drop_of(tx: Transaction, identity_ids: Sequence[int]) -> None:
    tx.run("delete from judgements where identity_id in (select value from json_each(?))", (identity_ids,))
