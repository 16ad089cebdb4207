"""Recognises front ends' additions to people's words: requests of their own, and documents before a person's words.

Each front end has prompts of its own for titles, tags, summaries and the like. They are known by their beginning, or by
a header. A prompt that its maker or an operator has changed is not recognised, and passes for a person's words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agents.llm import ChatMessage

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
