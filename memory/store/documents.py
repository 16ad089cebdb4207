"""Numbers for what can be found: every memory and every message is a document of the derived indexes.

Invariants: a memory's number is even, a message's odd, so one number says which row it stands for; a row that is
written, changed or removed leaves a line in the change log in the same transaction, and from that log alone the
indexes are fed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from memory.store.database import Transaction


def of_memory(memory_id: int) -> int:
    return 2 * memory_id


def of_message(message_id: int) -> int:
    return 2 * message_id + 1


def is_message(doc: int) -> bool:
    return doc % 2 == 1


def row_id(doc: int) -> int:
    """The id of the memory or the message behind `doc`."""
    return doc // 2


def changed(tx: Transaction, doc: int) -> None:
    """Have the indexes look at this row again."""
    tx.run("insert into changes (doc) values (?)", (doc,))


def changed_messages(tx: Transaction, message_ids: Sequence[int]) -> None:
    """The same for many messages."""
    docs = [of_message(message_id) for message_id in message_ids]
    tx.run("insert into changes (doc) select value from json_each(?)", (json.dumps(docs),))


def changed_names(tx: Transaction, identity_ids: Sequence[int]) -> None:
    """The same for all memories that are found under the name of one of these people, which is to go.

    A new name is taken up when a row changes: until then its people find it under the one it was told under.
    """
    tx.run(
        "insert into changes (doc) select 2 * m.id from memories m join owners o on o.id = m.owner_id"
        " where o.kind <> 'identity' and (m.author_id in (select value from json_each(?1))"
        "   or m.subject_id in (select value from json_each(?1)))",
        (json.dumps(list(identity_ids)),),
    )
