"""What people want not to be learned: from what they say, and of them from what others say.

Invariants: a wish belongs to the person, so it holds for all linked identities and in every place, and outlives what
is erased; a name alone never shows or changes anything: it can only keep something from being learned.
"""

from __future__ import annotations

from memory.store import people
from memory.store.database import Reader, Row, Transaction


def learn_from(tx: Transaction, person_id: int, learning: bool) -> None:
    """Whether anything is learned from what a person says from now on.

    When nothing is, what they have said already but nobody has read yet is not read either.
    """
    tx.run("update people set learning = ? where id = ?", (int(learning), person_id))
    if learning:
        return
    tx.run(
        "update messages set learn = 0 where learn = 1"
        " and author_id in (select id from identities where person_id = ?)"
        " and (id > (select extracted_to from sessions where sessions.id = messages.session_id)"
        "   or exists (select 1 from extractions e where e.session_id = messages.session_id"
        "     and e.state in ('pending', 'parked') and messages.id between e.first_id and e.last_id))",
        (person_id,),
    )


def learn_about(tx: Transaction, person_id: int, about: bool) -> None:
    """Whether anything is learned of a person from what others say."""
    tx.run("update people set about = ? where id = ?", (int(about), person_id))


def may_be_told_of(
    reader: Reader, *, owner_id: int, author_id: int | None, subject_id: int | None, subject: str
) -> bool:
    """Whether something may be kept that `author_id` tells of somebody; False when that one wants none of it.

    They are known by identity, or in a group where they have spoken by the name that the platform has for them. What
    people say of themselves, and what lies in their own private memory, is not told by others.
    """
    if subject_id is None and not subject:
        return True
    silent = reader.all(
        "select i.id, i.name, i.person_id from people p join identities i on i.person_id = p.id where p.about = 0"
    )
    owner = reader.one(
        "select o.chat_id, i.person_id from owners o left join identities i on i.id = o.identity_id where o.id = ?",
        (owner_id,),
    )
    if not silent or owner is None:
        return True
    by = None if author_id is None else people.speaker_by_id(reader, author_id).person_id
    return not any(
        row["person_id"] not in (by, owner["person_id"])
        and (row["id"] == subject_id or (_is_called(row["name"], subject) and _spoke_in(reader, row, owner["chat_id"])))
        for row in silent
    )


def _is_called(name: str, subject: str) -> bool:
    """Whether somebody with this name may be meant: by all of it, or by its first word."""
    said, known = " ".join(subject.casefold().split()), name.casefold().split()
    return bool(said and known) and said in (" ".join(known), known[0])


def _spoke_in(reader: Reader, identity: Row, chat_id: int | None) -> bool:
    row = reader.one(
        "select 1 from messages m join sessions s on s.id = m.session_id"
        " where m.author_id = ? and s.chat_id = ? limit 1",
        (identity["id"], chat_id),
    )
    return row is not None
