"""The API's routes for channels, messages, threads and the bot's own account.

Invariants: a function here is one route; it changes the world or raises `Refused`, never both; what it gives is the
status and the JSON of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from tests.platforms.discord.bodies import Call, judge, kept_files
from tests.platforms.discord.model import (
    ADD_REACTIONS,
    ATTACH,
    HISTORY,
    JSON,
    LOADING,
    MANAGE_THREADS,
    POSTS,
    PRIVATE_THREAD,
    SEND_IN_THREADS,
    SUPPRESS_EMBEDS,
    Channel,
    Guild,
    Message,
    Refused,
    bad_form,
    made_at,
)
from tests.platforms.discord.world import World, new_message

#: Status and body; None has no body.
Answer: TypeAlias = tuple[int, Any]


def me(call: Call) -> Answer:
    return 200, call.world.ready_wire()["user"]


def application(call: Call) -> Answer:
    return 200, call.world.application_wire()


def guilds(call: Call) -> Answer:
    there = [one for one in call.world.guilds.values() if not one.gone]
    return 200, [{"id": str(one.id), "name": one.name, "owner": False, "features": []} for one in there]


def open_dm(call: Call) -> Answer:
    recipient = int(call.body.get("recipient_id", 0))
    person = call.world.people.get(recipient)
    if person is None or person.is_bot:
        raise (
            Refused(400, 50033, "Invalid Recipient(s)")
            if person is None
            else Refused(403, 50007, "Cannot send messages to this user")
        )
    return 200, call.world.channel_wire(call.world.dm(recipient))


def channel(call: Call) -> Answer:
    return 200, call.world.channel_wire(_channel(call))


def change_channel(call: Call) -> Answer:
    """Only threads are changed by bots here: archived, locked, name."""
    world, place = call.world, _channel(call)
    if not place.is_thread:
        raise Refused(403, 50013, "Missing Permissions")
    manages = bool(world.allowed(place) & MANAGE_THREADS)
    archived, locked = call.body.get("archived"), call.body.get("locked")
    if (place.locked and not manages) or (locked is not None and not manages):
        raise Refused(403, 50013, "Missing Permissions")
    if place.archived and archived is not False:
        raise Refused(400, 50083, "Thread is archived")
    if (archived and place.owner != world.me.id and not manages) or not world.allowed(place) & SEND_IN_THREADS:
        raise Refused(403, 50013, "Missing Permissions")
    place.name = call.body.get("name", place.name)
    world.set_thread(place, archived=archived, locked=locked)
    return 200, world.channel_wire(place)


def type_in(call: Call) -> Answer:
    place = call.world.speakable(call.number("channel_id"))
    call.world.typing.append(place.id)
    return 204, None


def mark(call: Call) -> Answer:
    """A reaction of the bot's own, which the gateway tells of as of anybody's."""
    place = _channel(call)
    found, emoji = _message(place, call.number("message_id")), call.path["emoji"]
    if not call.world.allowed(place) & ADD_REACTIONS:
        raise Refused(403, 50013, "Missing Permissions")
    there = call.method == "mark"
    call.world.marks.append({"message_id": str(found.id), "emoji": emoji, "there": there})
    call.world.react(place, found.id, emoji, user=call.world.me.id, gone=not there)
    return 204, None


def history(call: Call) -> Answer:
    """Newest first, as Discord has it, also with `after`: then the oldest so many above it."""
    world, place = call.world, _channel(call)
    limit = int(call.query.get("limit", "50"))
    if not 1 <= limit <= 100:
        raise bad_form("limit", "int value should be between 1 and 100.", "NUMBER_TYPE_MAX")
    there = world.history(place) if world.allowed(place) & HISTORY else []
    if "after" in call.query:
        page = [one for one in there if one.id > int(call.query["after"])][:limit]
    elif "around" in call.query:
        middle = int(call.query["around"])
        before = [one for one in there if one.id < middle][-(limit // 2) :]
        page = [*before, *[one for one in there if one.id >= middle][: limit - len(before)]]
    else:
        before_id = int(call.query["before"]) if "before" in call.query else None
        page = [one for one in there if before_id is None or one.id < before_id][-limit:]
    return 200, [shown(world, one) for one in reversed(page)]


def message(call: Call) -> Answer:
    place = _channel(call)
    found = _message(place, call.number("message_id"))
    if not call.world.allowed(place) & HISTORY:
        raise Refused(403, 50013, "Missing Permissions")
    return 200, shown(call.world, found)


def send(call: Call) -> Answer:
    """A message of the bot; with `enforce_nonce` the one it said a short while ago under the same nonce."""
    world, body = call.world, call.body
    place = world.visible(call.number("channel_id"))
    if place.type in POSTS:
        raise Refused(400, 50024, "Cannot execute action on this channel type")
    nonce = body.get("nonce")
    if nonce is not None and body.get("enforce_nonce"):
        earlier = _under_nonce(world, place, nonce)
        if earlier is not None:
            world.deduplicated += 1
            return 200, {**shown(world, earlier), "nonce": earlier.nonce}
    reply_to = _referred(place, body.get("message_reference"))
    if reply_to is not None and not world.allowed(place) & HISTORY:
        raise Refused(400, 160002, "Cannot reply without permission to read message history")
    judge(call, body, "send", reply_to=reply_to)
    world.speakable(place.id)
    if call.files and not world.allowed(place) & ATTACH:
        raise Refused(403, 50013, "Missing Permissions")
    if place.archived:
        # Words open an archived thread again; only a locked one they can't.
        world.set_thread(place, archived=False)
    said = new_message(
        world,
        place,
        world.me,
        (body.get("content") or "").strip(),
        reply_to=None if reply_to is None else reply_to.id,
        nonce=nonce,
        flags=body.get("flags", 0),
        components=body.get("components") or [],
        embeds=body.get("embeds") or [],
        files=kept_files(call),
        asked=[body],
    )
    world.post(place, said)
    return 200, {**shown(world, said), **({} if nonce is None else {"nonce": nonce})}


def edit(call: Call) -> Answer:
    world, place = call.world, _channel(call)
    found = _message(place, call.number("message_id"))
    if found.author is not world.me:
        raise Refused(403, 50005, "Cannot edit a message authored by another user")
    if place.archived:
        raise Refused(400, 50083, "Thread is archived")
    change(call, found, call.body, "edit")
    return 200, shown(world, found)


def archived_threads(call: Call) -> Answer:
    """Public ones, which is all that the product asks for."""
    world, place = call.world, _channel(call)
    threads = [
        one
        for one in world.channels.values()
        if one.parent == place.id and one.archived and not one.deleted and one.type != PRIVATE_THREAD
    ]
    threads.sort(key=lambda one: one.archive_changed, reverse=True)
    limit, before = int(call.query.get("limit", "50")), call.query.get("before")
    if before is not None:
        threads = [one for one in threads if one.archive_changed < datetime.fromisoformat(before).timestamp()]
    told = [world.channel_wire(one) for one in threads[:limit]]
    return 200, {"threads": told, "members": [], "has_more": len(threads) > limit}


def shown(world: World, found: Message) -> JSON:
    """A message as REST gives it, without what the bot may not read."""
    return world.message_wire(found, whole=world.reads_messages or world.reads(found))


def change(call: Call, found: Message, body: JSON, where: str) -> None:
    """Changes a message of the bot's own, by whichever way. Raises `Refused`."""
    judge(call, body, where, before=found)
    changed: JSON = {}
    if "content" in body:
        changed["content"] = (body["content"] or "").strip()
    for name in ("components", "embeds"):
        if name in body:
            changed[name] = body[name] or []
    changed["flags"] = found.flags & ~LOADING
    if body.get("flags") is not None:
        # Of its flags only those for previews can be changed.
        changed["flags"] = changed["flags"] & ~SUPPRESS_EMBEDS | int(body["flags"]) & SUPPRESS_EMBEDS
    if call.files or "attachments" in body:
        # A list is all there is to be, with what is new; without one, what was there stays.
        stay = {str(one.get("id")) for one in body.get("attachments", [{"id": file.id} for file in found.files])}
        changed["files"] = [one for one in found.files if str(one.id) in stay] + kept_files(call)
    found.asked.append(body)
    call.world.edit(found, **changed)


def _under_nonce(world: World, place: Channel, nonce: Any) -> Message | None:
    for one in reversed(list(place.messages.values())):
        if one.author is world.me and one.nonce == nonce and world.now() - made_at(one.id) <= world.nonce_seconds:
            return one
    return None


def _referred(place: Channel, reference: JSON | None) -> Message | None:
    """The message that is answered; None where there is none and none was insisted on."""
    if reference is None or reference.get("type", 0) != 0:
        return None
    found = place.messages.get(int(reference["message_id"]))
    if found is not None and not found.deleted:
        return found
    if reference.get("fail_if_not_exists", True):
        raise bad_form("message_reference", "Unknown message", "REPLIES_UNKNOWN_MESSAGE")
    return None


def _channel(call: Call) -> Channel:
    return call.world.visible(call.number("channel_id"))


def _guild(call: Call) -> Guild:
    found = call.world.guilds.get(call.number("guild_id"))
    if found is None:
        raise Refused(404, 10004, "Unknown Guild")
    if found.gone:
        raise Refused(403, 50001, "Missing Access")
    return found


def _message(place: Channel, message_id: int) -> Message:
    found = place.messages.get(message_id)
    if found is None or found.deleted or found.only_for is not None:
        raise Refused(404, 10008, "Unknown Message")
    return found


_CHANNEL, _MESSAGE = "/channels/{channel_id}", "/channels/{channel_id}/messages/{message_id}"
#: HTTP method, path, the name under which faults, limits and counts know it, and what does it.
ROUTES: Sequence[tuple[str, str, str, Callable[[Call], Answer]]] = (
    ("GET", "/users/@me", "me", me),
    ("GET", "/users/@me/guilds", "guilds", guilds),
    ("POST", "/users/@me/channels", "open_dm", open_dm),
    ("GET", "/oauth2/applications/@me", "application", application),
    ("GET", "/applications/@me", "application", application),
    ("GET", _CHANNEL, "channel", channel),
    ("PATCH", _CHANNEL, "change_channel", change_channel),
    ("POST", f"{_CHANNEL}/typing", "typing", type_in),
    ("GET", f"{_CHANNEL}/messages", "history", history),
    ("POST", f"{_CHANNEL}/messages", "send", send),
    ("GET", _MESSAGE, "message", message),
    ("PUT", f"{_MESSAGE}/reactions/{{emoji}}/@me", "mark", mark),
    ("DELETE", f"{_MESSAGE}/reactions/{{emoji}}/@me", "unmark", mark),
    ("PATCH", _MESSAGE, "edit", edit),
    ("GET", f"{_CHANNEL}/threads/archived/public", "archived_threads", archived_threads),
)
