"""The place of a program's talk: its person's private chat on the channel of programs, a thread per conversation.

Invariant: the thread names the agent, so that a conversation never moves to another agent's memory.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from channels.api import API
from channels.base import Inbound

_CONVERSATION: Final = re.compile(r"[a-z0-9]{1,32}")


def said(user_id: str, name: str, thread: str, text: str = "", *, key: str = "", at: int = 0) -> Inbound:
    """Returns a message from a program of this person in a thread; `key` identifies the message."""
    return Inbound(
        channel=API, platform=API, bot_id=API, update_key=key, chat=user_id, chat_kind="private", author_id=user_id,
        author_name=name, message_id=key, text=text, sent_at=at, thread=thread, ticket=key,
    )  # fmt: skip


def thread_of(agent: str, conversation: str) -> str:
    return f"{agent}.{conversation}"


def agent_in(thread: str | None) -> str:
    return (thread or "").partition(".")[0]


def conversation_in(thread: str | None) -> str:
    return (thread or "").partition(".")[2]


def conversation(named: str) -> str:
    """Returns our name of a conversation, for any name that a program gives it."""
    return named if _CONVERSATION.fullmatch(named) else digest(named)[:16]


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
