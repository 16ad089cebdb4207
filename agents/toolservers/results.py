"""The result of a server's tool as text for a model. Pure.

Invariant: the text is at most `LONGEST` characters and a note long, whatever the server sends. Pictures, sounds and
files are named, not passed on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

#: The most characters of a result that a model reads.
LONGEST: Final = 20_000
#: The most parts of a result that are read.
_MOST_PARTS: Final = 500
_UNREADABLE: Final = "(something unreadable)"


def text_of(result: Mapping[str, Any]) -> str:
    """Returns the text of a result of `tools/call`, as JSON that nobody has checked."""
    content = result.get("content")
    content = content if isinstance(content, list) else []
    parts = [_text(part) if isinstance(part, dict) else _UNREADABLE for part in content[:_MOST_PARTS]]
    if len(content) > _MOST_PARTS:
        parts.append(f"[… {len(content) - _MOST_PARTS} parts left out …]")
    structured = result.get("structuredContent")
    if not "".join(parts).strip() and structured is not None:
        parts = [json.dumps(structured, ensure_ascii=False)]
    return capped("\n".join(parts)) or "(It returned nothing.)"


def capped(text: str) -> str:
    """Returns the beginning and the end of a text that is too long, with a note between."""
    if len(text) <= LONGEST:
        return text
    tail = LONGEST // 4
    gap = f"\n[… {len(text) - LONGEST} characters left out …]\n"
    return f"{text[: LONGEST - tail]}{gap}{text[len(text) - tail :]}"


def _text(part: Mapping[str, Any]) -> str:
    inside = part.get("resource")
    match part.get("type"):
        case "text":
            return str(part.get("text", ""))
        case "resource" if isinstance(inside, dict):
            return str(inside["text"]) if "text" in inside else f"(a file: {inside.get('uri', '')})"
        case "resource_link":
            return f"(a file: {part.get('name', '')} {part.get('uri', '')})"
        case "image":
            return "(a picture)"
        case "audio":
            return "(a sound)"
    return _UNREADABLE
