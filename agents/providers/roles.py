"""Brings a conversation into the order that the strictest servers take. Pure.

Invariants: after `alternating`, words of the person and words of the assistant take turns, the person's come first, and
only the first message is the system's. No words are lost. Equal beginnings stay equal, so that prompt caches hit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from agents.llm import ChatMessage

#: Stands before an assistant's message that nothing comes before: templates want the person to begin.
_EARLIER = "(The conversation began earlier.)"


def alternating(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Returns the messages with those of one role that follow one another joined.

    A turn that failed leaves a person's message without an answer, so two of them may stand in history together.
    """
    ordered: list[ChatMessage] = []
    for message in messages:
        last = ordered[-1] if ordered else None
        if last is not None and last.role == message.role != "tool" and not last.tool_calls:
            ordered[-1] = _joined(last, message)
            continue
        if message.role == "assistant" and not (message.content.strip() or message.tool_calls):
            continue
        if message.role == "assistant" and (last is None or last.role == "system"):
            ordered.append(ChatMessage(role="user", content=_EARLIER))
        ordered.append(message)
    return ordered


def without_system(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Returns the messages with the system's words at the head of the person's first message."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    others = [message for message in messages if message.role != "system"]
    return alternating([ChatMessage(role="user", content=system), *others] if system else others)


def without_tools(
    messages: Sequence[ChatMessage], where: Callable[[ChatMessage], bool] = lambda _message: True
) -> list[ChatMessage]:
    """Returns the messages with tool calls left out and their results told in the person's place.

    This concerns the calls of messages for which `where` is true.
    """
    plain: list[ChatMessage] = []
    left_out, names = True, dict[str, str]()
    for message in messages:
        if message.tool_calls:
            # Ids may repeat in a long conversation: a result belongs to the last message with calls.
            left_out, names = where(message), {call.id: call.name for call in message.tool_calls}
        if message.role == "tool" and left_out:
            name = names.get(message.tool_call_id or "", "a tool")
            plain.append(ChatMessage(role="user", content=f"(Result of {name}: {message.content})"))
        else:
            plain.append(replace(message, tool_calls=()) if where(message) else message)
    return alternating([one for one in plain if one.content.strip() or one.pictures or one.tool_calls])


def _joined(first: ChatMessage, second: ChatMessage) -> ChatMessage:
    words = "\n\n".join(text for text in (first.content, second.content) if text)
    return replace(second, content=words, pictures=(*first.pictures, *second.pictures))
