"""Finds the new message of a request, the words in it that are the person's own, and its conversation.

A program sends its whole conversation each time, and people change conversations: they have an answer made again, or
change an earlier message. A message that was told is known by the digest of the conversation up to it.

Invariants: a message is told once, however often it is sent. A conversation that goes on from an earlier place is a
branch, a conversation of its own: nothing is taken back in the first one. The part that both share comes from the
program's own account: it is read for the answer alone, and neither kept nor learned. Front ends' own prompts for
titles, tags and the like are known by their beginning or a header; one that was changed passes for a person's words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agents.llm import ChatMessage
from channels.api import API
from channels.base import Attachment, Place, carrying
from gateway.api.callers import agent_in, conversation_named, digest, thread_of
from gateway.api.wire import Asked
from memory.mailbox.mailbox import Mailbox

#: The beginnings of front ends' own prompts, in small letters.
_TASKS: Final = (
    # Open WebUI: titles, tags, questions, searches, summaries; faces; one answer made of several
    "### task:",
    "your task is to reflect the speaker's likely facial expression",
    "you have been provided with a set of responses from various models",
    # LibreChat: titles, today and before; summaries
    "provide a concise, 5-word-or-less title",
    "please generate a concise, 5-word-or-less title",
    "analyze this conversation and provide:",
    "detect user language and write in the same language an extremely concise title",
    "write an extremely concise title for this conversation",
    "hold on, before you continue i need you to write me a checkpoint",
    "hold on again, update your checkpoint",
    # Continue
    "given the following... please reply with a title",
    # others
    "create a concise, 3-5 word title",
    "generate a concise, 3-5 word title",
    "write a concise title for the conversation",
    "analyze the chat history to determine the necessity of generating search queries",
)
#: The two messages in which Open WebUI asks which tools to call, if the model is not to call them itself.
_TOOLS: Final = ("available tools: ", ("history:\n", "query: "))
_HEADERS: Final = ("x-openwebui-task", "x-remora-task")
#: The beginning of the text in which Open WebUI puts passages from documents and pages before the person's words.
_DOCUMENTS: Final = "### task:\nrespond to the user query using the provided context"
_END_OF_DOCUMENTS: Final = "</context>"
#: The characters of a message in which its beginning stands; each of the beginnings above is shorter.
_LOOKED_AT: Final = 1_000


def is_task(messages: Sequence[ChatMessage], headers: Mapping[str, str]) -> bool:
    """Returns whether a front end asks for itself: a title, tags, a summary, suggestions of questions."""
    if any(headers.get(name) for name in _HEADERS):
        return True
    first, last = (_beginning(one.content) for one in (messages[0], messages[-1]))
    if last.startswith(_DOCUMENTS):
        return False
    return last.startswith(_TASKS) or (first.startswith(_TOOLS[0]) and last.startswith(_TOOLS[1]))


def own_words(said: str) -> tuple[str, str]:
    """Returns a person's own words in a message, and the documents that a front end has put before them.

    The documents end at the last of their end marks: no document can pass its text for the person's words.
    """
    if not _beginning(said).startswith(_DOCUMENTS):
        return said, ""
    documents, _, words = said.rpartition(_END_OF_DOCUMENTS)
    return (words.strip(), documents.strip()) if documents else (said, "")


def _beginning(said: str) -> str:
    return said[:_LOOKED_AT].lstrip().casefold()


#: Milliseconds for which the same request, sent again, counts as a repetition if nobody knows whether it was answered.
_REPEATED_MS: Final = 10 * 60_000
#: Headers by which a program names a request, so that its repetitions are known.
_NAMED_BY: Final = ("idempotency-key", "x-openwebui-message-id", "x-client-request-id")
_RETRY: Final = "/retry"
#: The most characters of a branch's earlier messages that are read.
_EARLIER: Final = 24_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """The message that a request tells: its key, its place, and its text.

    `earlier` is the program's account of the words before the branch, as pairs of role and text. `told` is True if the
    person has said these words before, in the conversation that this is a branch of.
    """

    key: str
    place: Place
    text: str
    attachments: tuple[Attachment, ...] = ()
    earlier: tuple[tuple[str, str], ...] = ()
    told: bool = False


async def telling(
    asked: Asked,
    headers: Mapping[str, str],
    mailbox: Mailbox,
    root: Place,
    *,
    now: int,
    was_delivered: Callable[[str], bool],
) -> Telling:
    """Returns the message that a request tells in the conversation `root`, or in a branch of it."""
    (said, documents), keys = own_words(asked.said), _keys(asked, root)
    (*_, newest) = keys
    before = await mailbox.told_before(API, API, [f"{key}:" for key in keys.values()])
    rows = {place: before[n] for n, place in enumerate(keys) if n in before}
    given = next((headers[name] for name in _NAMED_BY if headers.get(name)), "")
    mark = digest(given)[:12] if given else "-"
    last = rows.get(max(rows)) if rows else None
    place = root if last is None else Place.from_session_key(last.session_key)
    key, text, told, branches = f"{keys[newest]}:0:{mark}", said, False, last is not None and not last.is_newest
    if (same := rows.get(newest)) is not None:
        _, n, marked = same.update_key.split(":")
        # Of a request without history, the same words may have been asked long before: what was said since tells.
        again = (headers.get("x-stainless-retry-count") or "0") != "0" and (same.is_newest or asked.has_history)
        young = now - same.received_at < _REPEATED_MS
        if marked == mark if given else young and not was_delivered(same.update_key):
            again = True
        key = same.update_key if again else f"{keys[newest]}:{int(n) + 1}:{mark}"
        anew = not again and same.is_last and (asked.has_history or bool(conversation_named(headers)))
        text = _RETRY if anew else said
        told = branches = not again and not same.is_newest and asked.has_history
    if branches:
        place = replace(root, thread=thread_of(agent_in(root.thread), digest(key)[:24]))
    own = next((at for at, row in rows.items() if row.session_key == place.session_key), newest)
    earlier = () if place == root else _bounded(asked, own)
    attachments = [carrying("", picture.media_type, picture.data) for picture in asked.messages[-1].pictures]
    if documents:
        attachments.append(carrying("documents.txt", "text/plain", documents.encode("utf-8", "replace")))
    return Telling(
        key=key,
        place=place,
        text=text,
        attachments=() if text != said else tuple(attachments),
        earlier=earlier,
        told=told,
    )


def _keys(asked: Asked, root: Place) -> dict[int, str]:
    """Returns the digest of the conversation up to each of the person's messages, by the message's place there."""
    running = hashlib.sha256(root.session_key.encode("utf-8", "surrogatepass"))
    digests = {}
    for at, one in enumerate(asked.talk):
        running.update(f"\0{one.role}:{own_words(one.content)[0]}".encode("utf-8", "surrogatepass"))
        for picture in one.pictures:
            running.update(picture.data)
        if one.role == "user":
            digests[at] = running.hexdigest()[:40]
    return digests


def _bounded(asked: Asked, end: int) -> tuple[tuple[str, str], ...]:
    kept, room = [], _EARLIER
    for one in reversed(asked.talk[:end]):
        room -= len(one.content)
        if room < 0:
            break
        if one.role in ("user", "assistant") and one.content:
            kept.append((one.role, one.content))
    return tuple(reversed(kept))
