"""Attachments of messages in their understood form: texts of files, transcribed voice messages, pictures.

Invariants: An attachment is understood once per inbox row, so that nothing is paid for twice. It is shown only with the
message it came with, which a scope or session names. Only a session's newest pictures are kept, in its window and
before. The words of a file are not those of the person who sent it: nothing is learned from them. Nor are those of a
message that is quoted, whose rows have kinds that begin with `QUOTED`. They go with the message that they quote, and no
person is told of them as of files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from memory.store.database import Reader, Row, Transaction
from memory.text.words import tokens

#: "text": a readable file; "spoken": a transcribed voice message; "named": only the name is known.
AttachedState: TypeAlias = Literal["text", "picture", "spoken", "named"]
#: The beginning of the kinds of what is quoted: its words ("quoted bot message", "quoted other part", with the author's
#: id on the platform as `media_type`), what came with it ("quoted image"), and who said a forwarded message.
QUOTED: Final = "quoted "
IS_QUOTED: Final = "kind like 'quoted %'"
#: The most pictures of a session that are kept when their messages have left the window.
_EARLIER: Final = 8
#: The share of a quote's words that stand in the message it was taken from: a long one is shortened, and a platform
#: shows addresses and signs otherwise than the bot wrote them.
_ALIKE: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """An attachment of a message. `why` is a code for why a `named` one was not read; `size` is in bytes."""

    kind: str
    name: str
    media_type: str
    size: int | None
    state: AttachedState
    why: str = ""
    text: str = ""
    data: bytes | None = field(default=None, repr=False)


def keep(tx: Transaction, now: int, inbox_id: int, attached: Sequence[Attached]) -> None:
    """Stores the attachments of an inbox row, unless the row has ended; storing them again changes nothing."""
    for position, one in enumerate(attached):
        tx.run(
            "insert into attachments (inbox_id, position, kind, name, media_type, size, state, why, text, data,"
            " created_at) select id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? from inbox"
            " where id = ? and state in ('pending', 'claimed') on conflict do nothing",
            (
                position, one.kind, one.name, one.media_type, one.size, one.state, one.why, one.text, one.data, now,
                inbox_id,
            ),
        )  # fmt: skip


def keep_late(
    tx: Transaction, now: int, update: tuple[str, str, str], platform_ref: str, attached: Sequence[Attached]
) -> None:
    """Keeps what is told of a message after its turn has begun, once; nothing if the message is gone by now.

    `update` are the platform, the bot's id and the key by which the message was taken.
    """
    kinds = sorted({one.kind for one in attached})
    row = tx.one(
        "select i.id as inbox_id, m.id as message_id, (select coalesce(max(position), -1) from attachments"
        " where inbox_id = i.id) as last from inbox i join messages m on m.turn_id = i.turn_id"
        " where i.platform = ?1 and i.bot_id = ?2 and i.update_key = ?3 and m.platform_ref = ?4 and m.role = 'user'"
        " and m.erased_at is null and not exists (select 1 from attachments a"
        " where a.inbox_id = i.id and a.kind in (select value from json_each(?5)))",
        (*update, platform_ref, kinds),
    )
    for position, one in enumerate(attached if row is not None else (), 1):
        assert row is not None
        tx.run(
            f"insert into attachments (inbox_id, message_id, position, {_ATTACHED}, created_at)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                row["inbox_id"], row["message_id"], row["last"] + position, one.kind, one.name, one.media_type,
                one.size, one.state, one.why, one.text, one.data, now,
            ),
        )  # fmt: skip


def of_inbox(reader: Reader, inbox_id: int) -> tuple[Attached, ...]:
    """Returns the attachments of an inbox row in order, without pictures' bytes; empty until they are understood."""
    rows = reader.all(
        "select kind, name, media_type, size, state, why, text from attachments where inbox_id = ? order by position",
        (inbox_id,),
    )
    return tuple(_attached(row) for row in rows)


def join(tx: Transaction, inbox_id: int, message_id: int) -> None:
    tx.run("update attachments set message_id = ? where inbox_id = ?", (message_id, inbox_id))


def of_messages(reader: Reader, message_ids: Sequence[int]) -> dict[int, tuple[Attached, ...]]:
    if not message_ids:
        return {}
    files: dict[int, list[Attached]] = defaultdict(list)
    for row in reader.all(
        f"select message_id, {_ATTACHED} from attachments where message_id in (select value from json_each(?))"
        " order by id",
        (message_ids,),
    ):
        files[row["message_id"]].append(_attached(row))
    return {message_id: tuple(attached) for message_id, attached in files.items()}


def last_pictured(reader: Reader, session_id: int, before: int) -> list[int]:
    """Returns the session's last messages below the id `before` whose pictures are kept and which may be recalled."""
    return reader.ids(
        "select distinct a.message_id from attachments a join messages m on m.id = a.message_id"
        " where a.data is not null and m.session_id = ? and m.id < ? and m.recall = 1 order by 1 desc limit ?",
        (session_id, before, _EARLIER),
    )


def summed_up(reader: Reader, session_id: int, limit: int) -> list[tuple[int, Attached]]:
    """Returns (time, file) for the last readable files of messages that the summary covers, newest first."""
    rows = reader.all(
        f"select said_at, {_ATTACHED} from attachments join (select m.id as said_id, m.said_at from messages m"
        " join sessions s on s.id = m.session_id where s.id = ? and m.recall = 1"
        " and m.id > s.summary_after and m.id <= s.window_after) said on said_id = message_id"
        f" where state = 'text' and not {IS_QUOTED} order by said_id desc, id desc limit ?",
        (session_id, limit),
    )
    return [(row["said_at"], _attached(row)) for row in rows]


def fade(tx: Transaction, session_id: int, after: int, *, keep_pictures: int) -> None:
    """Drops all but the newest pictures of a session's messages above the id `after`, and all but a few below it.

    Their names stay.
    """
    rows = tx.all(
        "select a.id, a.message_id > ? as shown from attachments a join messages m on m.id = a.message_id"
        " where a.data is not null and m.session_id = ? order by a.id desc",
        (after, session_id),
    )
    shown, earlier = ([row["id"] for row in rows if row["shown"] == each] for each in (1, 0))
    for picture in (*shown[keep_pictures:], *earlier[_EARLIER:]):
        tx.run("update attachments set data = null where id = ?", (picture,))


def drop(tx: Transaction, inbox_ids: Sequence[int]) -> None:
    tx.run(
        "delete from attachments where inbox_id in (select value from json_each(?)) and message_id is null",
        (inbox_ids,),
    )


def drop_of_messages(tx: Transaction, message_ids: Sequence[int]) -> None:
    tx.run("delete from attachments where message_id in (select value from json_each(?))", (message_ids,))


def quoting(reader: Reader, session_id: int, platform_refs: Sequence[str]) -> list[int]:
    """Returns the rows in a session that quote messages with these platform ids; a thread has that of its opening."""
    return reader.ids(
        "select a.id from sessions s join messages m on m.session_id = s.id join attachments a on a.message_id = m.id"
        f" where s.id = ?1 and {IS_QUOTED} and (m.reply_to in (select value from json_each(?2))"
        " or (a.kind like 'quoted % opening' and s.thread in (select value from json_each(?2))))",
        (session_id, platform_refs),
    )


def drop_rows(tx: Transaction, ids: Sequence[int]) -> None:
    tx.run("delete from attachments where id in (select value from json_each(?))", (ids,))


def quotes(reader: Reader, session_ids: Sequence[int]) -> list[Row]:
    return reader.all(
        f"select a.id, a.text from messages m join attachments a on a.message_id = m.id where {IS_QUOTED}"
        " and a.text <> '' and m.session_id in (select value from json_each(?))",
        (session_ids,),
    )


def drop_quotes(tx: Transaction, message_ids: Sequence[int]) -> None:
    """Drops what other messages quote of these, which still have their words.

    Of the bot's answers, and of messages in other chats, the quoted message's id is not kept: their words are compared.
    """
    tx.run(
        f"delete from attachments where {IS_QUOTED} and message_id in (select r.id from messages m"
        " join messages r on r.session_id = m.session_id and r.reply_to = m.platform_ref"
        " where m.id in (select value from json_each(?)))",
        (message_ids,),
    )
    there = tx.all(
        "select a.id, a.kind, a.media_type as user_id, a.text, m.session_id from attachments a"
        " join messages m on m.id = a.message_id where a.text <> '' and (a.kind like 'quoted bot %'"
        " or a.kind like 'quoted % elsewhere' or a.kind like 'quoted % opening' )"
    )
    if not there:
        return
    going = tx.all(
        "select m.session_id, m.role, m.text, i.user_id from messages m left join identities i on i.id = m.author_id"
        " where m.role in ('user', 'assistant') and m.text <> '' and m.id in (select value from json_each(?))",
        (message_ids,),
    )
    said = [(row, frozenset(tokens(row["text"]))) for row in going]
    drop_rows(tx, [quote["id"] for quote in there if any(_quotes(quote, row, terms) for row, terms in said)])


def _quotes(quote: Row, said: Row, terms: frozenset[str]) -> bool:
    """Returns whether a quote may be of a message with these terms. Platforms show its words without their marks."""
    if quote["kind"].startswith(f"{QUOTED}bot "):
        here = quote["session_id"] == said["session_id"] or quote["kind"].endswith(" elsewhere")
        if said["role"] != "assistant" or not here:
            return False
    elif quote["user_id"] != said["user_id"]:
        return False
    words = frozenset(tokens(quote["text"]))
    return len(words & terms) >= _ALIKE * len(words)


def drop_quotes_by(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """Drops what others quote of these people's words."""
    tx.run(
        f"delete from attachments where {IS_QUOTED} and message_id in (select m.id from attachments a"
        " join messages m on m.id = a.message_id join sessions s on s.id = m.session_id"
        " join chats c on c.id = s.chat_id join identities p on p.platform = c.platform and p.user_id = a.media_type"
        " where p.id in (select value from json_each(?)) and a.kind <> 'quoted forward')",
        (identity_ids,),
    )


def count(reader: Reader, message_ids: Sequence[int]) -> int:
    return reader.number(
        f"select count(*) from attachments where message_id in (select value from json_each(?)) and not {IS_QUOTED}",
        (message_ids,),
    )


_ATTACHED = "kind, name, media_type, size, state, why, text, data"


def _attached(row: Row) -> Attached:
    return Attached(**{name: value for name, value in dict(row).items() if name not in ("message_id", "said_at")})
