"""Every text column is known to hold words or not."""

from __future__ import annotations

from typing import Final

from memory.service import Service
from memory.store import word_columns
from memory.store.sqlite import health

#: Text columns without people's words: ids, names of settings and states, JSON of ids and numbers, error codes, dates.
PLAIN: Final[dict[str, tuple[str, ...]]] = {
    "store_settings": ("name", "value"), "migrations": ("name",), "replicas": ("id",),
    "lanes": ("session_key", "holder"), "duties": ("name", "holder"), "commits": ("writer",),
    "agents": ("name", "entities"), "people": ("language", "timezone", "follow_ups", "followed_up_on"),
    "identities": ("platform", "user_id"), "chats": ("platform", "kind"), "chat_aliases": ("platform", "reference"),
    "owners": ("kind", "thread"), "sessions": ("key", "thread", "snapshot", "chosen_model"),
    "turns": ("state", "error", "portions"), "messages": ("role", "platform_ref", "reply_to", "tool_call_id"),
    "effects": ("tool", "state"), "inbox": ("platform", "bot_id", "update_key", "session_key", "state", "error"),
    "outbox": ("session_key", "kind", "reply_to", "state", "run", "platform_ref", "error", "edits"),
    "access": ("channel", "subject", "reference", "state", "granted_by"), "pairings": ("channel",),
    "pairing_tries": ("channel", "user_id"), "web_codes": ("channel", "platform", "user_id", "agent"),
    "web_sessions": ("channel", "platform", "user_id", "agent"), "looks": ("action",), "erasures": ("what", "counts"),
    "forgotten": ("key_id",), "forgotten_named": ("key_id",),
    "imports": ("short_id", "format", "digest", "state", "counts"),
    "questions": ("purpose", "payload", "choices", "preset", "state", "answer"), "channel_state": ("channel", "name"),
    "attachments": ("kind", "media_type", "state", "why"),
    "memories": ("short_id", "kind", "category", "flags", "origin", "local_date"), "entities": ("type",),
    "recalls": ("item", "placed", "parts"), "extractions": ("reason", "state", "error"), "usage": ("purpose", "model"),
    "job_runs": ("job", "period", "state", "error", "result"), "job_items": ("state", "counts", "undo"),
    "comparisons": ("verdict", "why", "answer"), "refusals": ("job",),
    "reminders": ("kind", "language", "zone", "first", "rule", "until", "asked_ref"),
    "api_keys": ("channel", "scopes"),
}  # fmt: skip


async def test_every_text_column_is_declared(memory: Service) -> None:
    """A forget can only reach columns somebody thought of."""
    rows = await memory.database.read(
        lambda reader: reader.all(
            "select t.name as tbl, c.name as col from pragma_table_list t cross join pragma_table_info(t.name) c"
            " where t.type = 'table' and t.schema = 'main' and upper(c.type) = 'TEXT' and t.name not like 'sqlite_%'"
        )
    )
    declared = {
        (table, column) for known in (word_columns.WORDS, PLAIN) for table, names in known.items() for column in names
    }
    found = {(row["tbl"], row["col"]) for row in rows if row["tbl"] not in word_columns.DERIVED}
    assert found == declared
    assert sum(len(names) for known in (word_columns.WORDS, PLAIN) for names in known.values()) == len(declared)


async def test_the_derived_indexes_are_declared(memory: Service) -> None:
    """They hold copies of words, too, and a vector tells much of the words it was made of."""
    tables = await memory.database.read(
        lambda reader: reader.all("select name, type from pragma_table_list where schema = 'main'")
    )
    assert {row["name"] for row in tables} > set(word_columns.DERIVED)
    # A virtual table would keep its words in tables of its own.
    assert not [row["name"] for row in tables if row["type"] == "virtual"]
    blobs = await memory.database.read(
        lambda reader: reader.all(
            "select distinct t.name from pragma_table_list t cross join pragma_table_info(t.name) c"
            " where t.type = 'table' and t.schema = 'main' and upper(c.type) = 'BLOB'"
        )
    )
    # Keyed hashes tell nothing; all other blobs are pictures or derived from words.
    hashes = {
        "forgotten", "forgotten_named", "embedded", "pairings", "link_codes", "api_keys", "web_codes", "web_sessions",
    }  # fmt: skip
    told = {row["name"] for row in blobs} - hashes
    assert told == set(word_columns.DERIVED) - set(health.WORDS) | set(word_columns.BYTES)


async def test_a_column_is_emptied_as_its_table_allows(memory: Service) -> None:
    """Null where that is allowed, so that "nothing" is written in one way only."""
    rows = await memory.database.read(
        lambda reader: reader.all(
            "select t.name as tbl, c.name as col from pragma_table_list t cross join pragma_table_info(t.name) c"
            " where t.type = 'table' and t.schema = 'main' and c.\"notnull\" = 0 and c.pk = 0"
        )
    )
    held = {
        (t, name) for known in (word_columns.WORDS, word_columns.BYTES) for t, names in known.items() for name in names
    }
    assert {(row["tbl"], row["col"]) for row in rows} & held == word_columns.NULLABLE


def test_what_is_emptied_follows_from_the_list() -> None:
    """A column added to it is emptied wherever its table is."""
    assert word_columns.emptied("sessions") == "summary = null, active_task = null"
    assert word_columns.emptied("messages", besides=("author_name",)) == "text = '', tool_calls = null"
    assert word_columns.emptied("outbox").endswith("file_name = '', file = null")
    assert word_columns.holding("chats") == "(title <> '')"
    assert word_columns.holding("sessions") == "(summary is not null or active_task is not null)"
