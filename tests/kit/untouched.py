"""The bounds of forgetting, looked at from outside: every row of a store before and after, and whose it is.

Invariants: whose a row is follows from the tables alone, not from the code that is tried; every table is compared,
but for what is made from the others and for notes of the erasing itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from memory.forgetting.forgetting import Receipt
from memory.store.database import Reader
from tests.kit import stalls

Row: TypeAlias = Mapping[str, Any]
Key: TypeAlias = tuple[str, Any]
#: The owner of something: "person:<user id>", "group:<chat id>", or "" for nobody's.
Whose: TypeAlias = str

#: Made from the other tables by the indexer in its own time; notes of what was erased; signs of life of processes;
#: sizes and versions.
_APART: Final = re.compile(
    r"replicas|lanes|duties|commits|postings|indexed_documents|vectors|vector_signs|token_bits|(un)?embedded|embedding_cache|changes|sqlite_\w+|forgotten|forgotten_named|erasures|store_settings"
    r"|migrations"
)
#: The columns with the beginning of a session's prompt, as ids: taken anew whenever anything is corrected anywhere.
_CACHED: Final = frozenset({"snapshot", "snapshot_at"})
#: Columns that say of what a row is a part, the surest first.
_PART_OF: Final = ("owner_id", "memory_id", "message_id", "entity_id", "session_id", "session_key", "turn_id")
#: The columns that may change in the words of others in a group: nobody learns from these or finds them any more.
_UNLEARNED: Final = frozenset({"learn", "recall"})
#: `unsure` of a source whose message was erased.
_ERASED: Final = 2
#: The columns that may change in others' memories: how they stand to what went.
_STANDING: Final = frozenset({"superseded_by", "valid_until", "archived_at", "compressed_at"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """Every row of a store by table and primary key, and whose it is. `derived` are memories made of others."""

    rows: Mapping[Key, Row]
    whose: Mapping[Key, Whose]
    derived: frozenset[int]

    def of(self, table: str) -> dict[int, Row]:
        return {key[1][0]: row for key, row in self.rows.items() if key[0] == table}


def stock(reader: Reader) -> Stock:
    rows: dict[Key, Row] = {}
    for table in reader.all("select name from sqlite_master where type = 'table' order by name"):
        name = table["name"]
        if _APART.fullmatch(name):
            continue
        columns = reader.all(f"select name, pk from pragma_table_info('{name}')")
        keys = [one["name"] for one in sorted(columns, key=lambda one: one["pk"]) if one["pk"]]
        for row in reader.all(f"select * from {name}"):
            fields = {one: value for one, value in dict(row).items() if one not in _CACHED}
            rows[(name, tuple(fields[key] for key in keys))] = fields
    derived = frozenset(key[1][0] for key in rows if key[0] == "memory_parents")
    return Stock(rows=rows, whose=_whose(reader, rows), derived=derived)


@stalls.apart()
def damage(before: Stock, after: Stock, *, selves: Collection[str], may_all: str = "") -> list[str]:
    """Returns the changes in others' rows when those with the user ids `selves` had something forgotten.

    In the group `may_all` all may go. In another group only what they said themselves, and what the bot said.
    """
    faults = []
    owned = {f"person:{one}" for one in selves}
    identities = {row["id"] for row in before.of("identities").values() if row["user_id"] in selves}
    for key, row in before.rows.items():
        whose, now = before.whose.get(key, ""), after.rows.get(key)
        if now == row or whose in owned or (may_all and whose == f"group:{may_all}"):
            continue
        changed = None if now is None else {name for name in row if row[name] != now[name]}
        if whose.startswith("group:") and _theirs_in_group(before, after, key, row, changed, identities):
            continue
        faults.append(f"forgetting touches {key[0]} {key[1]} of {whose or 'nobody'}: {_brief(row, changed)}")
    return faults


@stalls.apart()
def appeared(before: Stock, after: Stock, *, selves: Collection[str]) -> list[str]:
    """Returns the rows that forgetting has written where it has nothing to write."""
    owned = {f"person:{one}" for one in selves}
    return [
        f"forgetting writes {key[0]} {key[1]} of {after.whose.get(key) or 'nobody'}"
        for key in after.rows
        if key not in before.rows and after.whose.get(key, "") not in owned and key[0] not in ("inbox", "outbox")
    ]


@stalls.apart()
def miscounted(before: Stock, after: Stock, receipt: Receipt) -> list[str]:
    """Returns where a receipt tells anything else than the difference of the tables."""
    # Nobody but the bot knows of a profile as a memory: it is filled anew from what stays.
    told_of = {number for number, row in before.of("memories").items() if row["kind"] != "profile"}
    gone = told_of - after.of("memories").keys()
    blanked = [
        row
        for number, row in after.of("messages").items()
        if row["erased_at"] is not None and before.of("messages")[number]["erased_at"] is None
    ]
    sources = {row["id"] for row in blanked if row["role"] == "user"}
    orphaned = {
        row["memory_id"]
        for (table, _), row in after.rows.items()
        if table == "memory_sources" and row["message_id"] in sources
    }
    files = before.of("attachments").keys() - after.of("attachments").keys()
    real = {
        "memories": len(gone), "messages": len(sources), "replies": len(blanked) - len(sources), "files": len(files),
        "keep_source": len(orphaned),
    }  # fmt: skip
    told = {
        "memories": receipt.memories + receipt.derived, "messages": receipt.messages, "replies": receipt.replies,
        "files": receipt.files, "keep_source": receipt.keep_source,
    }  # fmt: skip
    return [] if real == told else [f"receipt tells {told} of {real}"]


def texts(reader: Reader) -> str:
    return json.dumps([list(row.values()) for row in stock(reader).rows.values()], default=repr)


def _theirs_in_group(
    before: Stock, after: Stock, key: Key, row: Row, changed: Collection[str] | None, identities: Collection[int]
) -> bool:
    """Whether this row of a group is what a member may have go, or only stands otherwise to what went."""
    match key[0]:
        case "memories":
            theirs = row["author_id"] in identities or row["subject_id"] in identities or row["id"] in before.derived
            return theirs or (changed is not None and _STANDING.issuperset(changed))
        case "messages":
            if row["role"] != "user" or row["author_id"] in identities:
                return True
            return changed is not None and _UNLEARNED.issuperset(changed)
        case "attachments":
            return before.rows[("messages", (row["message_id"],))]["author_id"] in identities
        case "memory_sources" if changed == {"unsure"}:
            # Another's memory that others tell, too, keeps a mark of the member's message that is gone.
            said, kept = before.rows[("messages", (row["message_id"],))], after.rows[("messages", (row["message_id"],))]
            marked = after.rows[key]["unsure"] == _ERASED and kept["erased_at"] is not None
            return marked and said["author_id"] in identities
        case "memory_sources" | "memory_parents" | "memory_entities":
            return ("memories", (row["memory_id"],)) not in after.rows or (
                key[0] == "memory_parents" and ("memories", (row["parent_id"],)) not in after.rows
            )
        case "entities" | "entity_aliases":
            return _unnamed(before, after, row.get("entity_id", row.get("id")))
        case "sessions":
            return changed is not None and {"summary", "active_task"}.issuperset(changed)
        case "steps" | "effects" | "recalls" | "outbox":
            return True  # the bot's own
        case "questions":
            return row["asker_id"] in identities
        case _:
            return False


def _unnamed(before: Stock, after: Stock, entity_id: int) -> bool:
    """Whether some memory that named an entity has gone."""
    naming = {row["memory_id"] for (table, _), row in before.rows.items() if _names(table, row, entity_id)}
    return any(("memories", (memory_id,)) not in after.rows for memory_id in naming)


def _names(table: str, row: Row, entity_id: int) -> bool:
    return table == "memory_entities" and bool(row["entity_id"] == entity_id)


def _whose(reader: Reader, rows: Mapping[Key, Row]) -> dict[Key, Whose]:
    chats = {row["id"]: row for row in reader.all(_CHATS)}
    # The account of somebody's programs stands for the account whose key they have.
    people = {
        row["id"]: f"person:{row['user_id']}"
        for row in reader.all(
            "select i.id, coalesce(o.user_id, i.user_id) as user_id from identities i"
            " left join identities o on i.platform = 'api' and cast(o.id as text) = i.user_id"
        )
    }

    def of_chat(chat_id: int) -> Whose:
        chat = chats[chat_id]
        return people.get(chat["identity_id"], "") if chat["kind"] == "private" else f"group:{chat['reference']}"

    known: dict[str, dict[Any, Whose]] = {name: {} for name in _PART_OF}
    for row in reader.all("select id, identity_id, chat_id from owners"):
        known["owner_id"][row["id"]] = of_chat(row["chat_id"]) if row["chat_id"] else people.get(row["identity_id"], "")
    for row in reader.all("select id, key, chat_id from sessions"):
        known["session_id"][row["id"]] = known["session_key"][row["key"]] = of_chat(row["chat_id"])
    for table, name, part in (
        ("turns", "turn_id", "session_id"),
        ("memories", "memory_id", "owner_id"),
        ("messages", "message_id", "owner_id"),
        ("entities", "entity_id", "owner_id"),
    ):
        known[name] = {row["id"]: known[part].get(row[part], "") for (one, _), row in rows.items() if one == table}
    own: dict[str, Callable[[Row], Whose]] = {
        "identities": lambda row: people[row["id"]],
        "chats": lambda row: of_chat(row["id"]),
        "chat_aliases": lambda row: of_chat(row["chat_id"]),
        "sessions": lambda row: of_chat(row["chat_id"]),
        "people": lambda row: next(
            (
                people[one["id"]]
                for (table, _), one in rows.items()
                if table == "identities" and one["person_id"] == row["id"]
            ),
            "",
        ),
    }
    return {
        key: own[key[0]](row) if key[0] in own else next(_parts(known, row), people.get(row.get("identity_id"), ""))
        for key, row in rows.items()
    }


def _parts(known: Mapping[str, Mapping[Any, Whose]], row: Row) -> Iterator[Whose]:
    return (known[name].get(row[name], "") for name in _PART_OF if row.get(name) is not None)


def _brief(row: Row, changed: Collection[str] | None) -> str:
    shown = {name: value for name, value in row.items() if changed is None or name in changed}
    return f"{'gone' if changed is None else 'changed'} {shown}"


_CHATS: Final = (
    "select c.id, c.kind, c.identity_id, (select reference from chat_aliases where chat_id = c.id limit 1) as reference"
    " from chats c"
)
