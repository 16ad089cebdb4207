"""Document numbers: every memory and every message is a document of the derived indexes.

Invariants: A memory's number is even and a message's is odd, so the number says which row it stands for. A row that is
written, changed or removed leaves a line in the change log in the same transaction. The indexes are fed from that log
alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory.scope import Scope
from memory.store.database import Reader, Row, Transaction, walled


def of_memory(memory_id: int) -> int:
    return 2 * memory_id


def of_message(message_id: int) -> int:
    return 2 * message_id + 1


def is_message(doc: int) -> bool:
    return doc % 2 == 1


def row_id(doc: int) -> int:
    return doc // 2


def changed(tx: Transaction, doc: int) -> None:
    """Logs a change of a row, so that the indexes read it again."""
    tx.run("insert into changes (doc) values (?)", (doc,))


def changed_messages(tx: Transaction, message_ids: Sequence[int]) -> None:
    docs = [of_message(message_id) for message_id in message_ids]
    tx.run("insert into changes (doc) select value from json_each(?)", (docs,))


def changed_names(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """Logs a change of all memories that are found under the name of one of these people, before the name is removed.

    A new name needs no such entry: it is indexed when a row changes, and until then the row is found under the name it
    was told under.
    """
    tx.run(
        "insert into changes (doc) select 2 * m.id from memories m join owners o on o.id = m.owner_id"
        " where o.kind <> 'identity' and (m.author_id in (select value from json_each(?1))"
        "   or m.subject_id in (select value from json_each(?1)))",
        (identity_ids,),
    )


def has_changes(reader: Reader) -> bool:
    return reader.one("select 1 from changes limit 1") is not None


@walled
def state(reader: Reader, scope: Scope, setting: str, besides: Collection[int]) -> Row:
    """Returns the state of an index for a scope, as a row of made_of, is_behind, documents and has_reflections.

    These are the store setting that says what the index is made of, whether it has not read changes of what the scope
    can see but for the messages `besides`, the number of memories and messages that the scope can find, and whether it
    has_reflections. What is gone is not found by an index that has not read so yet, either.
    """
    seen, owned = scope.predicate("m"), scope.owned("s")
    either = (*owned.parameters, *seen.parameters)
    row = reader.one(
        "select (select value from store_settings where name = ?) as made_of,"
        " exists (select 1 from (select doc, doc % 2 as odd, doc / 2 as row_id from changes) c"
        "   left join messages s on c.odd = 1 and s.id = c.row_id left join memories m on c.odd = 0 and m.id = c.row_id"
        f"   where c.doc not in (select value from json_each(?)) and ({owned.sql} or {seen.sql})) as is_behind,"
        " (select count(*) from messages s where s.nth is not null and s.recall = 1 and s.erased_at is null"
        f" and {owned.sql}) + (select count(*) from memories m where m.kind in ('fact', 'style', 'event', 'reflection')"
        f" and {seen.sql}) as documents,"
        f" exists (select 1 from memories m where m.kind = 'reflection' and {seen.sql}) as has_reflections",
        (setting, [*map(of_message, besides)], *either, *either, *seen.parameters),
    )
    assert row is not None
    return row


def take_changes(tx: Transaction, *, limit: int) -> list[Row]:
    """Removes the oldest changes from the log, for indexes that read them now. Returns them as rows of doc.

    Damage may have left any value in `doc`.
    """
    return tx.all(
        "delete from changes where id in (select id from changes order by id limit ?) returning doc", (limit,)
    )


def standing(reader: Reader, docs: Collection[int]) -> list[Row]:
    """Returns those documents that an index holds or that are to be found: what is indexed of them, and their words.

    The rows are of doc; of has_words, partition, other_partition and tokens in the word index; of the hash of the
    embedded text; and, with an owner_id if they are to be found, of the kind of the owner, the author_id and subject_id
    of a memory with the names of author and person, and of words: text and author_name of a message, else subject,
    topic, key, value, category and tier.
    """
    return reader.all(
        # Divided inside, as in `postings.matching`.
        "select d.doc, w.doc is not null as has_words, w.partition, w.other_partition, w.tokens, e.hash,"
        " coalesce(s.owner_id, m.owner_id) as owner_id, o.kind, s.text, s.author_name, m.author_id, m.subject_id,"
        " m.subject, m.topic, m.key, m.value, m.category, m.kind as tier, a.name as author, p.name as person"
        " from (select d.value as doc, d.value % 2 as odd, d.value / 2 as row_id from json_each(?) d) d"
        " left join indexed_documents w on w.doc = d.doc left join embedded e on e.doc = d.doc"
        " left join messages s on d.odd = 1 and s.id = d.row_id and s.recall = 1 and s.erased_at is null"
        "   and s.nth is not null"
        " left join memories m on d.odd = 0 and m.id = d.row_id and m.kind in ('fact', 'style', 'event', 'reflection')"
        " left join owners o on o.id = coalesce(s.owner_id, m.owner_id)"
        " left join identities a on a.id = m.author_id left join identities p on p.id = m.subject_id"
        " where w.doc is not null or e.doc is not null or o.id is not null",
        (docs,),
    )


def after(reader: Reader, doc: int, *, limit: int) -> list[int]:
    return reader.ids(
        "select doc from (select 2 * id as doc from memories where id > ? order by id limit ?) told"
        " union all select doc from ("
        "   select 2 * id + 1 as doc from messages where id >= ? and nth is not null order by id limit ?) said"
        " order by doc limit ?",
        (doc // 2, limit, (doc + 1) // 2, limit, limit),
    )


def highest(reader: Reader) -> int:
    return reader.number(
        "select 2 * coalesce(max(id), 0) from (select max(id) as id from memories union all select max(id) from"
        " messages)"
        " newest"
    )
