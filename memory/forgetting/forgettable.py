"""Selects the rows a person may have erased, and other rows with the same words: ids and texts for the eraser.

Invariant: Nothing is changed here, and none of the rows read are shown to anybody.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory.scope import Scope
from memory.store.database import Reader, Row, walled
from memory.store.filter_rows import Reach

# Memories and messages that are chosen -------------------------------------------------------------------------------


def messages_of(
    reader: Reader, message_ids: Sequence[int], *, owners: Sequence[int], authors: Sequence[int]
) -> list[int]:
    """Returns those of these messages that `authors` wrote, that `owners` hold, or that the bot answered `authors`.

    The bot's answers to others in a group are theirs.
    """
    return reader.ids(
        "select m.id from messages m where m.id in (select value from json_each(?1))"
        " and (m.author_id in (select value from json_each(?2)) or m.owner_id in (select value from json_each(?3))"
        " or m.role <> 'user' and (exists (select 1 from sessions s join chats c on c.id = s.chat_id"
        "   where s.id = m.session_id and c.kind = 'private') or exists (select 1 from messages asked"
        "   where asked.turn_id = m.turn_id and asked.role = 'user'"
        "   and asked.author_id in (select value from json_each(?2)))))",
        (message_ids, authors, owners),
    )


def messages_here(reader: Reader, session_ids: Sequence[int], reach: Reach) -> list[int]:
    return reader.ids(
        "select id from messages m where m.session_id in (select value from json_each(?1)) and m.erased_at is null and"
        " (m.owner_id in (select value from json_each(?2))"
        " or m.role = 'user' and m.author_id in (select value from json_each(?3)))",
        (session_ids, reach.owners, reach.authors),
    )


def memories(reader: Reader, reach: Reach) -> list[int]:
    return reader.ids(
        "select id from memories where owner_id in (select value from json_each(?1))"
        " or owner_id in (select value from json_each(?2)) and owner_id not in"
        "   (select id from owners where kind = 'agent')"
        " and (author_id in (select value from json_each(?3)) or subject_id in (select value from json_each(?3)))",
        reach,
    )


def messages_of_people(reader: Reader, identity_ids: Sequence[int]) -> list[int]:
    return reader.ids(
        "select m.id from messages m left join owners o on o.id = m.owner_id where m.erased_at is null and"
        " (o.identity_id in (select value from json_each(?1)) or m.author_id in (select value from json_each(?1)))",
        (identity_ids,),
    )


def memories_of_people(reader: Reader, identity_ids: Sequence[int]) -> list[int]:
    return reader.ids(
        "select m.id from memories m join owners o on o.id = m.owner_id where o.kind <> 'agent' and"
        " (o.identity_id in (select value from json_each(?1)) or m.author_id in (select value from json_each(?1))"
        " or m.subject_id in (select value from json_each(?1)))",
        (identity_ids,),
    )


@walled
def memories_between(reader: Reader, scope: Scope, first: int, last: int) -> list[int]:
    """Returns the memories learned from `first` up to, not including, `last`, without those that follow from others."""
    within = scope.predicate("m")
    return reader.ids(
        "select m.id from memories m where m.learned_at >= ? and m.learned_at < ?"
        f" and (m.kind not in ('profile', 'directive') or m.origin <> 'derived') and {within.sql}",
        (first, last, *within.parameters),
    )


# Rows that go with them ----------------------------------------------------------------------------------------------


def owners_of(reader: Reader, message_ids: Collection[int]) -> set[int]:
    rows = reader.ids(
        "select distinct owner_id from messages where owner_id is not null and id in (select value from json_each(?))",
        (message_ids,),
    )
    return set(rows)


def sessions_of(reader: Reader, owners: Sequence[int], identities: Sequence[int]) -> list[int]:
    """Returns the sessions that may tell something of these owners: the groups', and these people's private ones."""
    return reader.ids(
        "select s.id from sessions s join owners o on o.chat_id = s.chat_id"
        " where o.id in (select value from json_each(?1))"
        " union select m.session_id from messages m join sessions s on s.id = m.session_id"
        " join chats c on c.id = s.chat_id and c.kind = 'private'"
        " where m.author_id in (select value from json_each(?2))"
        # The bot may have said something where nobody else has yet.
        " union select s.id from chats c join sessions s on s.chat_id = c.id where c.kind = 'private'"
        " and (c.identity_id in (select value from json_each(?2)) or c.identity_id in"
        "   (select identity_id from owners where id in (select value from json_each(?1))))"
        " union select m.session_id from messages m join owners o on o.identity_id = m.author_id"
        " join sessions s on s.id = m.session_id join chats c on c.id = s.chat_id and c.kind = 'private'"
        " where o.id in (select value from json_each(?1))",
        (owners, identities),
    )


def said_again(reader: Reader, texts: Sequence[str], *, places: Sequence[int], authors: Sequence[int]) -> list[int]:
    return reader.ids(
        "select id from messages where author_id in (select value from json_each(?1)) and role = 'user'"
        " and erased_at is null and owner_id in (select value from json_each(?2))"
        " and text in (select value from json_each(?3))",
        (authors, places, texts),
    )


def answers(
    reader: Reader,
    session_id: int,
    *,
    after: int,
    owners: Sequence[int],
    turns: Collection[int],
    authors: Sequence[int],
    limit: int,
) -> list[Row]:
    """Returns the next of the bot's messages in a session, as rows of id, text and tool_calls.

    In a group they are those that these owners hold, those of these turns, and those that answer these people.
    """
    return reader.all(
        "select m.id, m.text, m.tool_calls from messages m join sessions s on s.id = m.session_id"
        " join chats c on c.id = s.chat_id where m.session_id = ?1 and m.id > ?2 and m.role <> 'user'"
        " and m.erased_at is null and (c.kind = 'private' or m.owner_id in (select value from json_each(?3))"
        " or m.turn_id in (select value from json_each(?4)) or exists (select 1 from messages asked"
        "   where asked.turn_id = m.turn_id and asked.role = 'user'"
        "   and asked.author_id in (select value from json_each(?5)))) order by m.id limit ?6",
        (session_id, after, owners, turns, authors, limit),
    )


def with_tools(reader: Reader, turn_ids: Collection[int]) -> list[int]:
    return reader.ids(
        "select m.id from messages m where m.role <> 'user' and m.turn_id in (select value from json_each(?))"
        " and exists (select 1 from messages t where t.turn_id = m.turn_id and t.tool_calls is not null)",
        (turn_ids,),
    )


def texts(reader: Reader, message_ids: Collection[int], *, by: Sequence[int] | None = None) -> list[str]:
    rows = reader.all(
        "select distinct text from messages where id in (select value from json_each(?1)) and text <> ''"
        " and (?2 is null or author_id in (select value from json_each(?2)))",
        (message_ids, by),
    )
    return [row["text"] for row in rows]


def not_by_people(reader: Reader, message_ids: Collection[int]) -> frozenset[int]:
    rows = reader.ids(
        "select id from messages where role <> 'user' and id in (select value from json_each(?))", (message_ids,)
    )
    return frozenset(rows)


def with_words(reader: Reader, message_ids: Collection[int]) -> frozenset[int]:
    rows = reader.ids(
        "select id from messages where erased_at is null and id in (select value from json_each(?))", (message_ids,)
    )
    return frozenset(rows)


def gone_by_age(reader: Reader, message_ids: Collection[int]) -> frozenset[int]:
    """Returns the messages whose words are gone by age, although nobody has excluded them from learning."""
    rows = reader.ids(
        "select id from messages where erased_at is not null and learn = 1 and id in (select value from json_each(?))",
        (message_ids,),
    )
    return frozenset(rows)


def losing_a_source(reader: Reader, message_ids: Collection[int], *, besides: Collection[int]) -> int:
    return reader.number(
        "select count(distinct memory_id) from memory_sources where message_id in (select value from json_each(?))"
        " and memory_id not in (select value from json_each(?))",
        (message_ids, besides),
    )


# Data kept by turns --------------------------------------------------------------------------------------------------


def told_in(reader: Reader, turn_ids: Collection[int], memory_ids: Collection[int]) -> list[Row]:
    """Returns the products of these turns, shown or not: rows of turn_id, text and whether a memory was `given`."""
    return reader.all(
        "with told (turn_id, text) as ("
        " select turn_id, text || ' ' || coalesce(tool_calls, '') from messages where role <> 'user'"
        "   and turn_id in (select value from json_each(?1))"
        " union all select turn_id, completion from steps where turn_id in (select value from json_each(?1))"
        " union all select turn_id, coalesce(result, '') from effects where turn_id in (select value from"
        " json_each(?1))"
        " union all select turn_id, text || ' ' || markup || ' ' || buttons || ' ' || file_name from outbox"
        "   where turn_id in (select value from json_each(?1)))"
        " select turn_id, text, exists (select 1 from recalls r where r.turn_id = t.turn_id and r.item = 'memory'"
        "   and r.item_id in (select value from json_each(?2))) as given from told t",
        (turn_ids, memory_ids),
    )


def answers_in(reader: Reader, turn_ids: Collection[int]) -> list[int]:
    return reader.ids(
        "select id from messages where role <> 'user' and erased_at is null"
        " and turn_id in (select value from json_each(?))",
        (turn_ids,),
    )


def tool_traffic(reader: Reader, turn_ids: Collection[int]) -> list[int]:
    """Returns the messages of ended turns that nobody was shown: calls of tools and their results."""
    return reader.ids(
        "select m.id from messages m join turns t on t.id = m.turn_id where m.role <> 'user' and t.state <> 'running'"
        " and (m.role = 'tool' and m.erased_at is null or m.tool_calls is not null)"
        " and m.turn_id in (select value from json_each(?))",
        (turn_ids,),
    )
