"""Opt-outs: people's wishes that nothing be learned from their own words, or about them from the words of others.

Invariants: An opt-out belongs to the person, so it holds for all linked identities and in every place, and it outlives
the erasure of their data. A name alone never shows or changes anything: it can only keep a memory from being learned
about the one person who has borne that name for a while, not about another person or a thing of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memory.store import people
from memory.store.database import Reader, Row
from memory.store.entities import Named, normal_form

#: The time for which a person must have borne a name before it counts, in milliseconds: a week.
A_WHILE_MS: Final = 7 * 86_400_000


def may_be_told_of(
    reader: Reader,
    *,
    owner_id: int,
    author_id: int | None,
    subject_id: int | None,
    subject: str,
    names: Sequence[Named] = (),
    now: int,
) -> bool:
    """Returns whether a statement by `author_id` about a person may be kept; False if that person opted out.

    The person is recognised by identity or, in a group where they have spoken, by their name on the platform. The name
    must be theirs (see `_is_theirs`), and `subject` must be a person's name: it is listed as a person among `names`,
    the names found in the statement's context, or it is not listed there and is spelled like a name. People's own
    statements about themselves, and rows of a person's private memory, do not count as told by others.
    """
    if subject_id is None and not subject:
        return True
    silent = reader.all(f"{_BEARERS} where p.about = 0")
    owner = reader.one(
        "select o.chat_id, i.person_id from owners o left join identities i on i.id = o.identity_id where o.id = ?",
        (owner_id,),
    )
    if not silent or owner is None:
        return True
    by = None if author_id is None else people.speaker_by_id(reader, author_id).person_id
    others = [row for row in silent if row["person_id"] not in (by, owner["person_id"])]
    if any(row["id"] == subject_id for row in others):
        return False
    if not _is_a_name(subject, names):
        return True
    return not any(_is_theirs(reader, row, subject, owner["chat_id"], now=now) for row in others)


def _is_a_name(subject: str, names: Sequence[Named]) -> bool:
    types = {named.type for named in names if named.normal == normal_form(subject)}
    return "person" in types if types else bool(subject) and not subject.islower()


def _is_theirs(reader: Reader, identity: Row, name: str, chat_id: int | None, *, now: int) -> bool:
    """Returns whether a name is this identity's in a chat: borne there for a while, and by nobody else there.

    A rival must have borne the name for a while, too: otherwise a person who took it today would take it away from
    its bearer.
    """
    if not (_has_borne(identity, name, now=now) and _spoke_in(reader, identity, chat_id)):
        return False
    others = reader.all(f"{_BEARERS} where i.person_id <> ? and i.name <> ''", (identity["person_id"],))
    return not any(_has_borne(row, name, now=now) and _spoke_in(reader, row, chat_id) for row in others)


def _has_borne(identity: Row, name: str, *, now: int) -> bool:
    said, known = " ".join(name.casefold().split()), identity["name"].casefold().split()
    return bool(said and known) and said in (" ".join(known), known[0]) and identity["named_at"] <= now - A_WHILE_MS


def _spoke_in(reader: Reader, identity: Row, chat_id: int | None) -> bool:
    return reader.has(
        "select 1 from messages m join sessions s on s.id = m.session_id"
        " where m.author_id = ? and s.chat_id = ? limit 1",
        (identity["id"], chat_id),
    )


_BEARERS = "select i.id, i.name, i.named_at, i.person_id from identities i join people p on p.id = i.person_id"
