"""The requests of a bot: read from HTTP, and a message's body judged by Discord's rules and by ours.

Invariants: what Discord refuses is refused in its words; what it would let pass and a careful bot does not do (a ping, a
link preview) is no refusal but a violation, which is recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web
from aiohttp.multipart import BodyPartReader

from tests.platforms.discord.model import (
    BIGGEST_FILE,
    CODE,
    JSON,
    SUPPRESS_EMBEDS,
    File,
    Message,
    Refused,
    bad_form,
    mentioned,
)
from tests.platforms.discord.world import World

_LONGEST = 2_000
_LONGEST_NONCE = 25
_BUTTON, _ROW = 2, 1
_FILE = re.compile(r"files?\[\d{1,2}\]|file")
_BARE_URL = re.compile(r"(?<!<)https?://[^\s<>]{1,2000}")


@dataclass(slots=True, kw_only=True)
class Call:
    """One request of the API: what stands in its path, its address and its body."""

    world: World
    method: str
    path: dict[str, str]
    query: dict[str, str]
    body: JSON
    files: list[tuple[str, bytes, str]]

    def number(self, name: str) -> int:
        """An id in the path. Raises `Refused` for what is none."""
        text = self.path[name]
        if not text.isdigit():
            raise bad_form(name, f'Value "{text}" is not snowflake.', "NUMBER_TYPE_COERCE")
        return int(text)


async def read(request: web.Request) -> tuple[JSON | list[JSON], list[tuple[str, bytes, str]]]:
    """A request's body and its files (name, bytes, media type). Raises `Refused` for what is no body."""
    if not request.can_read_body:
        return {}, []
    if request.content_type.startswith("multipart/"):
        body: JSON = {}
        files: list[tuple[str, bytes, str]] = []
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader):
                continue
            data = bytes(await part.read(decode=True))
            if part.name == "payload_json":
                body = json.loads(data)
            elif _FILE.fullmatch(part.name or ""):
                files.append((part.filename or "file", data, part.headers.get("content-type", "")))
            # A part with another name is let fall.
        return body, files
    try:
        read_body = await request.json()
    except ValueError as error:
        raise Refused(400, 50109, "The request body contains invalid JSON.") from error
    assert isinstance(read_body, dict | list)
    return read_body, []


def judge(
    call: Call, body: JSON, where: str, *, before: Message | None = None, reply_to: Message | None = None
) -> None:
    """A message's body, new or (`before`) as a change. Raises `Refused`; records what should not have been asked.

    `where` names the request in the record.
    """
    world = call.world
    content = body.get("content")
    if content is not None and len(content) > _LONGEST:
        world.violations.append({"kind": "too long", "method": where, "length": len(content)})
        raise bad_form("content", "Must be 2000 or fewer in length.")
    nonce = body.get("nonce")
    if nonce is not None and len(str(nonce)) > _LONGEST_NONCE:
        raise bad_form("nonce", "Must be 25 or fewer in length.")
    _judge_components(body.get("components") or [])
    _judge_files(call, body, before)
    shown = bool((content or "").strip() or body.get("embeds") or call.files)
    if before is not None:
        shown = shown or bool(before.files or body.get("components", before.components))
        shown = shown or ("content" not in body and bool(before.content))
    if not shown:
        raise Refused(400, 50006, "Cannot send an empty message")
    if content is None:
        return
    pinged = _pinged(body, content, reply_to)
    if pinged is not None:
        world.violations.append({"kind": "ping", "method": where, "text": content, "pinged": pinged})
    flags = body.get("flags", 0 if before is None else before.flags)
    if not flags & SUPPRESS_EMBEDS and _BARE_URL.search(CODE.sub(" ", content)):
        world.violations.append({"kind": "preview", "method": where, "text": content})


def _judge_files(call: Call, body: JSON, before: Message | None) -> None:
    """Checks the attached files, and that each of `attachments` is a file of the request or of the message before."""
    if any(len(data) > BIGGEST_FILE for _, data, _ in call.files):
        raise Refused(413, 40005, "Request entity too large")
    there = {str(number) for number in range(len(call.files))}
    if before is not None:
        there |= {str(file.id) for file in before.files}
    for at, one in enumerate(body.get("attachments") or ()):
        if str(one.get("id")) not in there:
            raise bad_form(f"attachments.{at}.id", "Unknown attachment.", "MESSAGE_ATTACHMENT_NOT_FOUND")


def kept_files(call: Call) -> list[File]:
    """The files of a request, as attachments with ids."""
    world = call.world
    return [File(world.snowflakes.next(), name, data, kind) for name, data, kind in call.files]


def _pinged(body: JSON, content: str, reply_to: Message | None) -> list[str] | None:
    """Returns whom a message would ping with this text: None when `allowed_mentions` forbids all, whatever it says."""
    allowed = body.get("allowed_mentions")
    if allowed is not None and not any(allowed.get(name) for name in ("parse", "users", "roles", "replied_user")):
        return None
    parse: Sequence[str] = ("users", "roles", "everyone") if allowed is None else allowed.get("parse", ())
    people, roles, everyone = mentioned(content)
    listed = {"users": (), "roles": ()} if allowed is None else {k: allowed.get(k, ()) for k in ("users", "roles")}
    pinged = [f"<@{one}>" for one in people if "users" in parse or str(one) in map(str, listed["users"])]
    pinged += [f"<@&{one}>" for one in roles if "roles" in parse or str(one) in map(str, listed["roles"])]
    pinged += ["@everyone"] if everyone and "everyone" in parse else []
    if reply_to is not None and (allowed is None or allowed.get("replied_user")):
        pinged.append(f"<@{reply_to.author.id}>")
    return pinged


def _judge_components(rows: Sequence[JSON]) -> None:
    if len(rows) > 5:
        raise bad_form("components", "Must be between 1 and 5 in length.")
    seen: set[str] = set()
    for at, row in enumerate(rows):
        within = row.get("components", [])
        if row.get("type") != _ROW:
            raise bad_form(f"components.{at}.type", "Value must be one of {1}.", "UNION_TYPE_CHOICES")
        if not 1 <= len(within) <= 5:
            raise bad_form(f"components.{at}.components", "Must be between 1 and 5 in length.")
        for spot, part in enumerate(within):
            place = f"components.{at}.components.{spot}"
            if part.get("type") != _BUTTON or part.get("style") == 5:
                continue
            name, label = str(part.get("custom_id", "")), str(part.get("label", ""))
            if not 1 <= len(name) <= 100:
                raise bad_form(f"{place}.custom_id", "Must be between 1 and 100 in length.")
            if len(label) > 80 or not (label or part.get("emoji")):
                raise bad_form(f"{place}.label", "Must be between 1 and 80 in length.")
            if name in seen:
                raise bad_form(f"{place}.custom_id", "Component custom id cannot be duplicated", "DUPLICATED_ID")
            seen.add(name)
