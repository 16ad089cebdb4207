"""The contents of a message besides words: files in every kind the Bot API has, places, contacts, polls.

Invariants: a photo comes in all sizes that Telegram would make of it, the original last, each a file of its own; an
animation is named a second time as a document, and a venue as a location, as Telegram does for old clients.
"""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from tests.platforms.telegram.updates import JSON
from tests.platforms.telegram.world import World

#: The kinds of files people send, with the ending of their path.
SUFFIXES = {
    "photo": ".jpg",
    "document": ".bin",
    "voice": ".oga",
    "audio": ".mp3",
    "video": ".mp4",
    "video_note": ".mp4",
    "animation": ".mp4",
    "sticker": ".webp",
}
_MIMES = {"voice": "audio/ogg", "audio": "audio/mpeg", "video": "video/mp4", "animation": "video/mp4"}
#: The longer side of the sizes a photo is kept in, in pixels.
_BOXES = (90, 320, 800, 1280, 2560)
#: Kinds that stand together in one album, and how many there may be.
_TOGETHER = ({"photo", "video"}, {"document"}, {"audio"})
_ALBUM = range(2, 11)


def file(
    world: World,
    *,
    kind: str,
    data: str,
    filename: str | None = None,
    mime: str | None = None,
    file_size: int | None = None,
    size_told: bool = True,
    pixels: Sequence[int] | None = None,
    seconds: int = 2,
    emoji: str = "👍",
) -> JSON:
    """Returns the fields by which a message tells of its file; see `client.File`. `data` is in base64."""
    raw = base64.b64decode(data)
    width, height = pixels or (1280, 960)
    if kind == "photo":
        return {"photo": _sizes(world, raw, width, height, file_size, told=size_told)}
    suffix = PurePath(filename or "").suffix or SUFFIXES[kind]
    stored = world.keep_file(kind, raw, suffix, size=file_size, told=size_told).wire()
    named = {"file_name": filename} if filename else {}
    mime = mime or _MIMES.get(kind)
    typed = {"mime_type": mime} if mime else {}
    shown = {"width": width, "height": height, "duration": seconds}
    match kind:
        case "document":
            name = filename or "file.bin"
            guessed = mime or mimetypes.guess_type(name)[0] or "application/octet-stream"
            return {"document": {**stored, "file_name": name, "mime_type": guessed}}
        case "voice":
            return {"voice": {**stored, "duration": seconds, **typed}}
        case "audio":
            return {"audio": {**stored, "duration": seconds, **named, **typed}}
        case "video":
            return {"video": {**stored, **shown, **named, **typed}}
        case "video_note":
            return {"video_note": {**stored, "length": 240, "duration": seconds}}
        case "animation":
            old = {**stored, **named, **typed}
            return {"animation": {**old, **shown}, "document": old}
        case _:
            flags = {"type": "regular", "is_animated": False, "is_video": False, "emoji": emoji}
            return {"sticker": {**stored, "width": 512, "height": 512, **flags}}


def thing(
    *,
    location: Sequence[float] | None = None,
    venue: str | None = None,
    contact: str | None = None,
    poll: str | None = None,
    dice: str | None = None,
) -> JSON:
    """Returns the content of a message without a file: a place, perhaps with a name; a person; a question; a throw."""
    content: JSON = {}
    if location is not None:
        content["location"] = {"latitude": location[0], "longitude": location[1]}
    if venue is not None:
        content.setdefault("location", {"latitude": 52.52, "longitude": 13.4})
        content["venue"] = {"location": content["location"], "title": venue, "address": "A Street 1"}
    if contact is not None:
        content["contact"] = {"phone_number": "+491234567", "first_name": contact}
    if poll is not None:
        content["poll"] = _poll(poll)
    if dice is not None:
        content["dice"] = {"emoji": dice, "value": 3}
    return content


def album_fault(kinds: Sequence[str]) -> str:
    """Why files of these kinds make no album; empty when they do."""
    if len(kinds) not in _ALBUM:
        return f"an album has 2 to 10 parts, not {len(kinds)}"
    if not any(set(kinds) <= group for group in _TOGETHER):
        return f"{sorted(set(kinds))} don't stand in one album"
    return ""


def _sizes(world: World, raw: bytes, width: int, height: int, size: int | None, *, told: bool) -> list[JSON]:
    """The original has the bytes that were given; what is scaled down says its measure in place of a picture."""
    longer = max(width, height)
    sizes: list[JSON] = []
    for box in _BOXES:
        if box >= longer:
            break
        wide, high = max(1, width * box // longer), max(1, height * box // longer)
        scaled = world.keep_file("photo", f"{wide}x{high}".encode(), SUFFIXES["photo"], told=told)
        sizes.append({**scaled.wire(), "width": wide, "height": high})
    original = world.keep_file("photo", raw, SUFFIXES["photo"], size=size, told=told)
    return [*sizes, {**original.wire(), "width": width, "height": height}]


def _poll(question: str) -> JSON:
    options: list[dict[str, Any]] = [
        {"persistent_id": f"option{n}", "text": text, "voter_count": 0} for n, text in enumerate(("Yes", "No"))
    ]
    flags = dict.fromkeys(("is_closed", "allows_multiple_answers", "allows_revoting", "members_only"), False)
    return {
        "id": "5001",
        "question": question,
        "options": options,
        "total_voter_count": 0,
        "is_anonymous": True,
        "type": "regular",
        **flags,
    }
