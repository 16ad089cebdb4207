"""Which columns hold people's words: originals, what was derived from them, and copies.

Invariant: every text column of the schema is listed, as words or as plain (ids, keys, states, figures, dates); a test
compares this list with the database. Whoever adds a column decides here whether a forget has to reach it.
"""

from __future__ import annotations

from typing import Final

#: Columns that may hold what somebody said, wrote or is called, by table.
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "identities": ("name",),
    "chats": ("title",),
    "sessions": ("summary", "active_task"),
    "messages": ("author_name", "text", "tool_calls"),
    "steps": ("completion",),
    "effects": ("result",),
    "inbox": ("payload",),
    "outbox": ("text",),
    "channel_state": ("value",),
    "memories": ("subject", "topic", "key", "value", "tags"),
    "entities": ("name", "norm"),
    "entity_aliases": ("alias",),
    "job_runs": ("result",),
    "job_items": ("undo",),
}

#: Text columns that hold none: ids, names of settings and states, JSON of ids and numbers, error codes, dates.
PLAIN: Final[dict[str, tuple[str, ...]]] = {
    "store_settings": ("name", "value"),
    "migrations": ("name",),
    "agents": ("name",),
    "people": ("language", "timezone"),
    "identities": ("platform", "user_id"),
    "chats": ("platform", "kind"),
    "chat_aliases": ("platform", "reference"),
    "owners": ("kind", "thread"),
    "sessions": ("key", "thread", "snapshot"),
    "turns": ("state", "error"),
    "messages": ("role", "platform_ref", "reply_to", "tool_call_id"),
    "effects": ("tool", "state"),
    "inbox": ("platform", "bot_id", "update_key", "session_key", "state", "error"),
    "outbox": ("session_key", "kind", "reply_to", "state", "run", "platform_ref", "error"),
    "questions": ("purpose", "payload", "choices", "preset", "state", "answer"),
    "channel_state": ("channel", "name"),
    "memories": ("short_id", "kind", "category", "flags", "origin", "local_date"),
    "entities": ("type",),
    "recalls": ("item", "placed", "parts"),
    "extractions": ("reason", "state", "error"),
    "usage": ("purpose", "model"),
    "job_runs": ("job", "period", "state", "error"),
    "job_items": ("state",),
}

#: Indexes derived from the words above; each is emptied of a row by indexing its change.
DERIVED: Final = ("words",)
