"""People and their identities: names, settings, opt-outs, and links between identities of one person.

Invariant: people are identified by (platform, user id), never by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memory.store import chats, memories, questions, scopes, word_columns
from memory.store.chats import Session
from memory.store.database import Reader, Row, Transaction, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """The identity that speaks and the settings of its person.

    `learning` says whether anything is learned from their words, `about` whether anything about them is learned from
    the words of others, and `manner` whether a manner of talking to them is learned. `follow_ups` are the hours between
    which they want to be asked how their plans went, such as "10-20"; "" for never.
    """

    id: int
    person_id: int
    name: str
    language: str | None
    timezone: str | None
    learning: bool
    about: bool = True
    manner: bool = True
    follow_ups: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An identity as its person knows it. `language` is the person's own setting, or None."""

    id: int
    platform: str
    user_id: str
    name: str
    language: str | None


def speaker(tx: Transaction, *, platform: str, user_id: str, name: str, now: int) -> Speaker:
    seen = tx.one(
        "update identities set last_seen_at = ? where platform = ? and user_id = ? and name = ?"
        f" returning id, person_id, name, {_SETTINGS}",
        (now, platform, user_id, name),
    )
    if seen is not None:
        return _speaker(seen)
    row = tx.one(_SPEAKER + " where i.platform = ? and i.user_id = ?", (platform, user_id))
    if row is None:
        person_id = tx.insert("insert into people (created_at) values (?)", (now,))
        identity_id = tx.insert(
            "insert into identities (person_id, platform, user_id, name, named_at, first_seen_at, last_seen_at)"
            " values (?, ?, ?, ?, ?, ?, ?)",
            (person_id, platform, user_id, name, now, now, now),
        )
        scopes.own(tx, "identity", identity_id)
        return Speaker(id=identity_id, person_id=person_id, name=name, language=None, timezone=None, learning=True)
    if row["name"].casefold().split() != name.casefold().split():
        tx.run("update identities set named_at = ? where id = ?", (now, row["id"]))
    tx.run("update identities set name = ?, last_seen_at = ? where id = ?", (name, now, row["id"]))
    return replace(_speaker(row), name=name)


def known_speaker(reader: Reader, *, platform: str, user_id: str) -> Speaker | None:
    return reader.first(_SPEAKER + " where i.platform = ? and i.user_id = ?", (platform, user_id), _speaker)


def speaker_by_id(reader: Reader, identity_id: int) -> Speaker:
    speaker = reader.first(_SPEAKER + " where i.id = ?", (identity_id,), _speaker)
    assert speaker is not None
    return speaker


def accounts(reader: Reader, identity_id: int) -> list[Account]:
    """Returns all identities of the person behind one, itself included, in the order they were first seen."""
    return reader.each(
        _ACCOUNT + " where i.person_id = (select person_id from identities where id = ?) order by i.id",
        (identity_id,),
        _account,
    )


def account(reader: Reader, identity_id: int) -> Account | None:
    return reader.first(_ACCOUNT + " where i.id = ?", (identity_id,), _account)


def all_identities(reader: Reader) -> list[Row]:
    return reader.all("select platform, user_id, name, person_id from identities order by last_seen_at desc")


def linked_identities(reader: Reader) -> list[Row]:
    """Returns the identities of people who have several, as rows of id, person_id, platform and user_id."""
    return reader.all(
        "select id, person_id, platform, user_id from identities where person_id in"
        " (select person_id from identities group by person_id having count(*) > 1) order by id"
    )


def names(reader: Reader, identity_ids: Collection[int]) -> dict[int, str]:
    return reader.pairs("select id, name from identities where id in (select value from json_each(?))", (identity_ids,))


def link(tx: Transaction, identity_id: int, other_id: int) -> None:
    """Makes one person of the people behind two identities, including everything else linked to either.

    Rows keep their owners: only who may read them changes. The first person's settings take precedence over the
    other's. Each opt-out of either is kept.
    """
    person_id, other_person_id = (speaker_by_id(tx, each).person_id for each in (identity_id, other_id))
    if person_id == other_person_id:
        return
    tx.run(
        "update people set language = coalesce(people.language, other.language),"
        " timezone = coalesce(people.timezone, other.timezone), learning = people.learning * other.learning,"
        " about = people.about * other.about, manner = people.manner * other.manner,"
        " followed_up_on = case when people.followed_up_on < other.followed_up_on then other.followed_up_on"
        " else people.followed_up_on end"
        " from people as other where people.id = ? and other.id = ?",
        (person_id, other_person_id),
    )
    tx.run("update identities set person_id = ? where person_id = ?", (person_id, other_person_id))
    tx.run("delete from people where id = ?", (other_person_id,))
    chats.drop_snapshots(tx)


def unlink(tx: Transaction, identity_id: int) -> list[int]:
    """Separates an identity from its person into a person of its own, with the same settings.

    Memories derived from rows of both sides are deleted, and the rows they were derived from come back, to be
    compressed anew. Facts are merged per owner, so no profile slot depends on what is deleted. Returns the ids of the
    deleted memories.
    """
    person_id = speaker_by_id(tx, identity_id).person_id
    questions.withdraw_naming(tx, [each.id for each in accounts(tx, identity_id)])
    together = tx.all(
        "select o.id, o.identity_id from owners o join identities i on i.id = o.identity_id where i.person_id = ?",
        (person_id,),
    )
    if len(together) < 2:
        return []
    alone_id = tx.insert(
        "insert into people (language, timezone, learning, about, manner, follow_ups, followed_up_on, created_at)"
        " select language, timezone, learning, about, manner, follow_ups, followed_up_on, created_at from people"
        " where id = ?",
        (person_id,),
    )
    tx.run("update identities set person_id = ? where id = ?", (alone_id, identity_id))
    chats.drop_snapshots(tx)
    leaves = {int(row["id"]): row["identity_id"] == identity_id for row in together}
    return memories.take_apart(tx, _of_both_sides(tx, leaves))


def keep_with(tx: Transaction, identity_id: int, other_id: int) -> None:
    """Makes an account that stands for another, such as its programs' or the page's, one person with that other one.

    If the other one was separated from a person, the account leaves that person, too, and all their settings.
    """
    person_id, before_id = (speaker_by_id(tx, each).person_id for each in (identity_id, other_id))
    if person_id != before_id:
        unlink(tx, other_id)
        left_id = speaker_by_id(tx, other_id).person_id
        tx.run("update identities set person_id = ? where id = ?", (person_id, other_id))
        tx.run("delete from people where id = ?", (left_id,))


def begin_anew(tx: Transaction, identity_id: int) -> None:
    """Separates all identities of an erased person and resets their language, time zone and wishes.

    Opt-outs stay, or the next message would be learned from again.
    """
    for each in accounts(tx, identity_id):
        unlink(tx, each.id)
        tx.run(
            "update people set language = null, timezone = null, follow_ups = '' where id ="
            " (select person_id from identities where id = ?)",
            (each.id,),
        )


def _of_both_sides(tx: Transaction, leaves: Mapping[int, bool]) -> list[int]:
    """Returns the memories that belong to both sides, by their own owner or the owners of their parents."""
    rows = tx.all(
        "select p.memory_id, d.owner_id as own, m.owner_id as made_of from memories m"
        " join memory_parents p on p.parent_id = m.id join memories d on d.id = p.memory_id"
        " where m.owner_id in (select value from json_each(?))",
        (leaves,),
    )
    sides: defaultdict[int, set[bool]] = defaultdict(set)
    for row in rows:
        sides[row["memory_id"]] |= {leaves[owner] for owner in (row["own"], row["made_of"]) if owner in leaves}
    return [memory_id for memory_id, found in sides.items() if len(found) == 2]


def put(tx: Transaction, person_id: int, **settings: Value) -> None:
    marks = ", ".join(f"{name} = ?" for name in settings)
    tx.run(f"update people set {marks} where id = ?", (*settings.values(), person_id))


def followed_up(reader: Reader) -> list[int]:
    """Returns the identity that spoke last of each person who wants to be asked how their plans went."""
    return reader.ids(
        "select id from (select i.id, i.person_id,"
        " row_number() over (partition by i.person_id order by i.last_seen_at desc, i.id) as n"
        " from people p join identities i on i.person_id = p.id where p.follow_ups <> '') seen"
        " where n = 1 order by person_id"
    )


def asked_on(reader: Reader, person_id: int) -> str:
    return reader.text("select followed_up_on from people where id = ?", (person_id,)) or ""


def follow_ups_since(reader: Reader) -> list[Row]:
    """Returns the hours in which people want to be asked, and the day they last were, for `take_over_follow_ups`."""
    return reader.all(
        "select i.platform, i.user_id, p.follow_ups, p.followed_up_on from identities i"
        " join people p on p.id = i.person_id"
    )


def take_over_follow_ups(tx: Transaction, rows: Iterable[Row]) -> None:
    """Takes over who was asked or has declined since, by another copy of the store, so that nobody is asked again."""
    for row in rows:
        tx.run(
            "update people set follow_ups = case when ?1 = '' then '' else follow_ups end,"
            " followed_up_on = case when followed_up_on < ?2 then ?2 else followed_up_on end"
            " where id = (select person_id from identities where platform = ?3 and user_id = ?4)",
            (row["follow_ups"], row["followed_up_on"], row["platform"], row["user_id"]),
        )


def set_timezone_of(tx: Transaction, owner_id: int, timezone: str | None) -> None:
    tx.run(
        "update people set timezone = ? where id = (select i.person_id from owners o"
        " join identities i on i.id = o.identity_id where o.id = ?)",
        (timezone, owner_id),
    )


def set_manner(tx: Transaction, session: Session, speaker: Speaker, on: bool) -> None:
    """Sets whether a manner of talking is learned from now on: for this person or, in a group, for the group."""
    if session.private:
        put(tx, speaker.person_id, manner=int(on))
    else:
        chats.put_chat(tx, session.chat_id, manner=int(on))


def unname(tx: Transaction, identity_ids: Sequence[int]) -> None:
    tx.run(f"update identities set {_UNNAMED} where id in (select value from json_each(?))", (identity_ids,))


def unname_silent(tx: Transaction, identity_ids: Sequence[int]) -> None:
    tx.run(
        f"update identities set {_UNNAMED} where id in (select value from json_each(?))"
        " and not exists (select 1 from messages m where m.author_id = identities.id and m.erased_at is null)",
        (identity_ids,),
    )


def linked(reader: Reader, identity_ids: Sequence[int]) -> list[int]:
    return reader.ids(
        "select id from identities where person_id in"
        " (select person_id from identities where id in (select value from json_each(?)))",
        (identity_ids,),
    )


def seen_until(reader: Reader, identity_ids: Sequence[int], at: int) -> list[int]:
    return reader.ids(
        "select id from identities where first_seen_at <= ? and id in (select value from json_each(?))",
        (at, identity_ids),
    )


def opted_out(reader: Reader) -> list[Row]:
    return reader.all(
        "select i.platform, i.user_id, p.learning, p.about from identities i join people p on p.id = i.person_id"
        " where p.learning = 0 or p.about = 0"
    )


def take_over_opt_outs(tx: Transaction, rows: Iterable[Row]) -> None:
    for row in rows:
        tx.run(
            "update people set learning = learning * ?, about = about * ?"
            " where id = (select person_id from identities where platform = ? and user_id = ?)",
            (row["learning"], row["about"], row["platform"], row["user_id"]),
        )


def unname_imported(tx: Transaction, import_id: int, identity_id: int | None, *, first: int, last: int) -> None:
    """Blanks the names of people known from an import only, including that of `identity_id`.

    They were seen once, from `first` to `last` (milliseconds UTC), or have messages in the import. People keep their
    names if they have other messages, have memories, have a private chat or are linked with another identity.
    """
    tx.run(
        f"update identities set {_UNNAMED} where name <> '' and last_seen_at = first_seen_at"
        " and (id = ?1 or first_seen_at between ?3 and ?4"
        "   or id in (select author_id from messages where import_id = ?2))"
        " and not exists (select 1 from messages m where m.author_id = identities.id"
        "   and (m.import_id is null or m.erased_at is null))"
        " and id not in (select author_id from memories where author_id is not null"
        "   union all select subject_id from memories where subject_id is not null"
        "   union all select identity_id from chats where identity_id is not null)"
        " and not exists (select 1 from identities other"
        "   where other.person_id = identities.person_id and other.id <> identities.id)",
        (identity_id, import_id, first, last),
    )


_UNNAMED = word_columns.emptied("identities")

_SPEAKER = (
    "select i.id, i.person_id, i.name, p.language, p.timezone, p.learning, p.about, p.manner, p.follow_ups"
    " from identities i join people p on p.id = i.person_id"
)

#: The settings of `_SPEAKER`, for a statement that returns rows of identities alone.
_SETTINGS = ", ".join(
    f"(select p.{column} from people p where p.id = person_id) as {column}"
    for column in ("language", "timezone", "learning", "about", "manner", "follow_ups")
)

_ACCOUNT = (
    "select i.id, i.platform, i.user_id, i.name, p.language from identities i join people p on p.id = i.person_id"
)


def _speaker(row: Row) -> Speaker:
    return Speaker(**{**dict(row), **{setting: bool(row[setting]) for setting in ("learning", "about", "manner")}})


def _account(row: Row) -> Account:
    return Account(**dict(row))
