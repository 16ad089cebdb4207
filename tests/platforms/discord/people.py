"""People's acts, and the fate of guilds and channels: the actions of `Control` that the bot is told of.

Invariants: what a person does here is what the bot is told of, in the same order; an action that can't be done raises
and changes nothing.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tests.platforms.control import Wrong
from tests.platforms.discord.interactions import COMMAND, COMPLETION, COMPONENT, FORM, inputs
from tests.platforms.discord.model import (
    ADMINISTRATOR,
    DEFAULT,
    FORUM,
    HAS_SNAPSHOT,
    JSON,
    MEDIA,
    NEWS,
    PERMISSIONS,
    POSTS,
    TEXT,
    VOICE,
    VOICE_MESSAGE,
    Channel,
    File,
    Guild,
    Interaction,
    Message,
    made_at,
    stamp,
)
from tests.platforms.discord.world import World, new_message

if TYPE_CHECKING:
    from tests.platforms.discord.server import Account, Platform

_KINDS = {"text": TEXT, "voice": VOICE, "announcement": NEWS, "forum": FORUM, "media": MEDIA}
#: The type that Discord gives an option which is a text.
_STRING = 3


def _say(
    _platform: Platform,
    account: Account,
    *,
    text: str,
    user: int,
    channel: int | None = None,
    reply_to: int | None = None,
    ping: bool = True,
    attachments: Sequence[tuple[str, str, str]] = (),
    voice: str | None = None,
    stickers: Sequence[str] = (),
    forwarded: bool = False,
    sent_at: float | None = None,
    name: str | None = None,
    nick: str | None = None,
    is_bot: bool | None = None,
    webhook: bool = False,
    kind: int | None = None,
    extra: JSON | None = None,
) -> JSON:
    world = account.world
    person = world.person(user, name=name, is_bot=is_bot)
    place = _place(world, user, channel)
    if place.type in POSTS:
        raise Wrong(f"{place.id} is a forum: open a post there, and speak in the post")
    if place.locked:
        raise Wrong(f"the thread {place.id} is locked")
    if nick is not None and place.guild is not None:
        world.guilds[place.guild].nicks[user] = nick
    answered = None if reply_to is None else _message(place, reply_to)
    if place.archived:
        world.set_thread(place, archived=False)
    files = [File(world.snowflakes.next(), n, base64.b64decode(data), media) for n, data, media in attachments]
    flags = 0
    if voice is not None:
        facts = {"duration_secs": 2.0, "waveform": "AAAA"}
        sound = File(world.snowflakes.next(), "voice-message.ogg", base64.b64decode(voice), "audio/ogg", facts)
        files, flags = [*files, sound], VOICE_MESSAGE
    message = new_message(
        world,
        place,
        person,
        "" if forwarded else text,
        at=sent_at,
        reply_to=reply_to,
        files=[] if forwarded else files,
        flags=flags,
        stickers=list(stickers),
        mentions=[answered.author.id] if answered is not None and ping else [],
        webhook=person.id if webhook else None,
        extra=extra or {},
    )
    if forwarded:
        _forward(world, place, message, text, files)
    if kind is not None:
        message.type = kind
    world.post(place, message)
    return {"channel": place.id, "message_id": message.id}


def _forward(world: World, place: Channel, message: Message, text: str, files: Sequence[File]) -> None:
    """Puts what is forwarded into a snapshot; the message itself says nothing."""
    for file in files:
        world.files[file.id] = file
    source = world.snowflakes.next(world.now() - 60)
    message.flags |= HAS_SNAPSHOT
    message.reference = {"type": 1, "channel_id": str(place.id), "message_id": str(source)}
    snapshot: JSON = {"type": DEFAULT, "content": text, "embeds": [], "edited_timestamp": None, "flags": 0}
    snapshot |= {"mentions": [], "mention_roles": [], "components": [], "timestamp": stamp(made_at(source))}
    snapshot["attachments"] = [one.wire(place.id, base_url=world.base_url, now=world.now()) for one in files]
    message.snapshots = [snapshot]


def _edit(_platform: Platform, account: Account, *, message_id: int, text: str) -> None:
    _, message = _anywhere(account.world, message_id)
    if message.author is account.world.me:
        raise Wrong("people can't edit what the bot wrote")
    account.world.edit(message, content=text)


def _unfurl(_platform: Platform, account: Account, *, message_id: int) -> None:
    """Discord has looked at a link in a message: an update that is no edit."""
    _, message = _anywhere(account.world, message_id)
    account.world.edit(message, embeds=[{"type": "link", "url": "https://example.org", "title": "Example"}])


def _react(_platform: Platform, account: Account, *, message_id: int, emoji: str, user: int, gone: bool) -> None:
    place, _ = _anywhere(account.world, message_id)
    account.world.react(place, message_id, emoji, user=user, gone=gone)


def _delete(_platform: Platform, account: Account, *, message_ids: Sequence[int], bulk: bool) -> None:
    found = [_anywhere(account.world, one) for one in message_ids]
    account.world.delete(found[0][0], [message for _, message in found], bulk=bulk)


def _dm(_platform: Platform, account: Account, *, user: int) -> JSON:
    return {"channel": account.world.dm(user).id}


def _close_dm(_platform: Platform, account: Account, *, user: int, closed: bool) -> None:
    account.world.person(user).closed = closed


def _admin(_platform: Platform, account: Account, *, user: int, guild: int) -> None:
    _guild(account.world, guild).admins.add(account.world.person(user).id)


def _add_guild(_platform: Platform, account: Account, *, name: str, guild: int | None = None) -> JSON:
    world = account.world
    again = guild is not None and guild in world.guilds
    added = world.add_guild(guild, name)
    first = None if again else world.add_channel(added, "general")
    return {"guild": added.id, "channel": None if first is None else first.id}


def _remove_guild(_platform: Platform, account: Account, *, guild: int, unavailable: bool) -> None:
    account.world.remove_guild(_guild(account.world, guild), unavailable=unavailable)


def _add_channel(
    _platform: Platform, account: Account, *, name: str, guild: int, kind: str, denied: Sequence[str] = ()
) -> JSON:
    if kind not in _KINDS:
        raise Wrong(f"a channel is one of {sorted(_KINDS)}, not {kind}")
    place = _guild(account.world, guild)
    return {"channel": account.world.add_channel(place, name, kind=_KINDS[kind], denied=_bits(denied)).id}


def _deny(_platform: Platform, account: Account, *, channel: int, denied: Sequence[str]) -> None:
    account.world.deny(_channel(account.world, channel), _bits(denied))


def _delete_channel(_platform: Platform, account: Account, *, channel: int) -> None:
    account.world.delete_channel(_channel(account.world, channel))


def _open_thread(
    _platform: Platform,
    account: Account,
    *,
    channel: int,
    name: str,
    user: int,
    message_id: int | None = None,
    private: bool = False,
    text: str | None = None,
) -> JSON:
    """Also a forum's post, whose first message has the post's id."""
    world = account.world
    parent, person = _channel(world, channel), world.person(user)
    if parent.is_thread or parent.guild is None or (parent.type in POSTS) != (text is not None):
        raise Wrong(f"{channel} is no place for that: threads are opened in channels, posts with a text in forums")
    starter = None if message_id is None else _message(parent, message_id)
    thread = world.open_thread(parent, name, by=person, starter=starter, private=private)
    if text is not None:
        first = new_message(world, thread, person, text)
        first.id = thread.id
        world.post(thread, first)
    return {"channel": thread.id}


def _set_thread(
    _platform: Platform, account: Account, *, channel: int, archived: bool | None = None, locked: bool | None = None
) -> None:
    thread = _channel(account.world, channel)
    if not thread.is_thread:
        raise Wrong(f"{channel} is no thread")
    account.world.set_thread(thread, archived=archived, locked=locked)


def _slash(
    _platform: Platform,
    account: Account,
    *,
    name: str,
    options: Mapping[str, str],
    user: int,
    channel: int | None = None,
    unchecked: bool = False,
) -> JSON:
    world = account.world
    place = _place(world, user, channel)
    data = _command_data(world, place, name, options, user, unchecked=unchecked)
    return _interact(world, COMMAND, user, place, data)


async def _autocomplete(
    _platform: Platform,
    account: Account,
    *,
    name: str,
    options: Mapping[str, str],
    focused: str,
    user: int,
    channel: int | None = None,
) -> JSON:
    """Waits as long as a person's Discord does."""
    world = account.world
    place = _place(world, user, channel)
    data = _command_data(world, place, name, options, user, unchecked=True)
    for option in data["options"]:
        option["focused"] = option["name"] == focused
    number = _interact(world, COMPLETION, user, place, data)["interaction"]
    asked = world.interactions[number]
    loop = asyncio.get_running_loop()
    deadline = loop.time() + world.answer_seconds
    while asked.choices is None and loop.time() < deadline:
        await world.pulse.wait(deadline - loop.time())
    return {"choices": asked.choices}


def _press(
    _platform: Platform, account: Account, *, message_id: int, custom_id: str, user: int, stale: bool = False
) -> JSON:
    world = account.world
    place, message = _anywhere(world, message_id)
    there = [part.get("custom_id") for row in message.components for part in row.get("components", ())]
    if custom_id not in there and not stale:
        raise Wrong(f"message {message_id} has no button {custom_id!r}; it has {there}")
    if message.only_for not in (None, user):
        raise Wrong(f"user {user} does not see message {message_id}")
    return _interact(world, COMPONENT, user, place, {"custom_id": custom_id, "component_type": 2}, message_id)


def _submit(_platform: Platform, account: Account, *, interaction: int, entered: str | Mapping[str, str]) -> JSON:
    world = account.world
    asked = world.interactions.get(interaction)
    if asked is None or asked.form is None:
        raise Wrong(f"interaction {interaction} was not answered by a form")
    fields = [field for outer in asked.form["components"] for field in inputs(outer)]
    values = {fields[0]["custom_id"]: entered} if isinstance(entered, str) else entered
    for field in fields:
        value = values.get(field["custom_id"], "")
        if len(value) > field.get("max_length", 4_000) or (field.get("required", True) and not value):
            raise Wrong(f"the field {field['custom_id']} does not take {len(value)} characters")
    components = [_filled(outer, values) for outer in asked.form["components"]]
    data = {"custom_id": asked.form["custom_id"], "components": components}
    return _interact(world, FORM, asked.user, world.channels[asked.channel], data, asked.message)


def _filled(outer: JSON, values: Mapping[str, str]) -> JSON:
    """A row or label of a form, as it comes back."""
    done = [
        {"type": 4, "custom_id": one["custom_id"], "value": values.get(one["custom_id"], "")} for one in inputs(outer)
    ]
    if "component" in outer:
        return {"type": outer["type"], "component": done[0]}
    return {"type": outer["type"], "components": done}


def _command_data(
    world: World, place: Channel, name: str, options: Mapping[str, str], user: int, *, unchecked: bool
) -> JSON:
    """A command as Discord tells of its use. Raises `Wrong` where this person is not offered it here."""
    found = _offered(world, place, name, user)
    if found is None and not unchecked:
        offered = sorted(one["name"] for scope in _scopes(place) for one in world.commands.get(scope, []))
        raise Wrong(f"user {user} is not offered /{name} in {place.id}; registered there: {offered}")
    known = {option["name"]: option for option in (found or {}).get("options", [])}
    if not unchecked:
        lacking = [o["name"] for o in known.values() if o.get("required") and o["name"] not in options]
        alien = [given for given in options if given not in known]
        if lacking or alien:
            raise Wrong(f"/{name} lacks {lacking} and does not know {alien}")
    given = [{"name": n, "type": known.get(n, {}).get("type", _STRING), "value": v} for n, v in options.items()]
    guild = {} if place.guild is None else {"guild_id": str(place.guild)}
    return {"id": (found or {"id": "1"})["id"], "name": name, "type": 1, "options": given, "resolved": {}, **guild}


def _offered(world: World, place: Channel, name: str, user: int) -> JSON | None:
    """The command that is shown to a person in a place under that name."""
    context = 1 if place.guild is None else 0
    for scope in _scopes(place):
        for command in world.commands.get(scope, []):
            contexts = command.get("contexts")
            if command["name"] != name or (scope is None and contexts is not None and context not in contexts):
                continue
            if place.guild is not None and command["default_member_permissions"] is not None:
                rights, needed = (
                    world.rights(world.guilds[place.guild], user),
                    int(command["default_member_permissions"]),
                )
                if not rights & ADMINISTRATOR and (needed == 0 or rights & needed != needed):
                    continue
            return command
    return None


def _scopes(place: Channel) -> list[int | None]:
    return [None] if place.guild is None else [place.guild, None]


def _interact(world: World, kind: int, user: int, place: Channel, data: JSON, message: int | None = None) -> JSON:
    asked: Interaction = world.interact(world.new_interaction(kind, user, place, data, message))
    return {"interaction": asked.id}


def _place(world: World, user: int, channel: int | None) -> Channel:
    if channel is None:
        return world.dm(user)
    place = _channel(world, channel)
    if place.recipient not in (None, user):
        raise Wrong(f"{channel} is the direct chat of user {place.recipient}")
    return place


def _channel(world: World, channel: int) -> Channel:
    found = world.channels.get(channel)
    if found is None or found.deleted:
        raise Wrong(f"there is no channel {channel}; there are {sorted(world.channels)}")
    return found


def _guild(world: World, guild: int) -> Guild:
    if guild not in world.guilds:
        raise Wrong(f"there is no guild {guild}; there are {sorted(world.guilds)}")
    return world.guilds[guild]


def _message(place: Channel, message_id: int) -> Message:
    if message_id not in place.messages:
        raise Wrong(f"there is no message {message_id} in {place.id}")
    return place.messages[message_id]


def _anywhere(world: World, message_id: int) -> tuple[Channel, Message]:
    for place in world.channels.values():
        if message_id in place.messages and not place.messages[message_id].deleted:
            return place, place.messages[message_id]
    raise Wrong(f"there is no message {message_id}")


def _bits(denied: Sequence[str]) -> int:
    unknown = [name for name in denied if name not in PERMISSIONS]
    if unknown:
        raise Wrong(f"there are no permissions {unknown}; there are {sorted(PERMISSIONS)}")
    return sum(PERMISSIONS[name] for name in set(denied))


ACTIONS: Mapping[str, Callable[..., JSON | Awaitable[JSON] | None]] = {
    "say": _say,
    "edit": _edit,
    "unfurl": _unfurl,
    "react": _react,
    "delete": _delete,
    "dm": _dm,
    "close_dm": _close_dm,
    "admin": _admin,
    "add_guild": _add_guild,
    "remove_guild": _remove_guild,
    "add_channel": _add_channel,
    "deny": _deny,
    "delete_channel": _delete_channel,
    "open_thread": _open_thread,
    "set_thread": _set_thread,
    "slash": _slash,
    "autocomplete": _autocomplete,
    "press": _press,
    "submit": _submit,
}
