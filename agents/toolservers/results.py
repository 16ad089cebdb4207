"""The result of a server's tool as text for a model. Pure.

Invariant: the text is at most `LONGEST` characters and a note long, whatever the server sends. Pictures, sounds and
files are named, not passed on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

#: The most characters of a result that a model reads.
LONGEST: Final = 20_000


def text_of(result: Mapping[str, Any]) -> str:
    """Returns the text of a result of `tools/call`, as JSON."""
    parts = list(_parts(result.get("content") or []))
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


def _parts(content: object) -> Iterator[str]:
    for part in content if isinstance(content, list) else []:
        kind = part.get("type")
        if kind == "text":
            yield str(part.get("text", ""))
        elif kind == "resource":
            inside = part.get("resource") or {}
            yield str(inside["text"]) if "text" in inside else f"(a file: {inside.get('uri', '')})"
        elif kind == "resource_link":
            yield f"(a file: {part.get('name', '')} {part.get('uri', '')})"
        else:
            yield f"({'a picture' if kind == 'image' else 'a sound' if kind == 'audio' else 'something unreadable'})"
