"""The gateway's interface to access decisions made in the chat, pairing codes, and the state that channels keep.

Invariant: each method is one transaction of `store/access.py` or `store/channel_state.py`, whose rules hold.
"""

from __future__ import annotations

from collections.abc import Callable

from memory.context import reads, writes, writes_at
from memory.store import access, channel_state
from memory.store.database import Database


class Access:
    """One store's access decisions, by the configured ids of its channels."""

    def __init__(self, database: Database, *, now: Callable[[], int]) -> None:
        self._database = database
        self._now = now

    state = reads(access.state)
    grants = reads(access.grants)
    allow = writes_at(access.allow)
    block = writes_at(access.block)
    open_pairing = writes_at(access.open_pairing)
    take_pairing = writes_at(access.take_pairing)
    move_group = writes_at(access.move_group)
    kept = reads(channel_state.kept)
    keep = writes(channel_state.keep)
