"""All that one bot can know of a Discord: people, guilds, channels, messages, interactions, and how they come about.

Invariants: whatever changes here is told to the gateway at once and in that order; a message's id is its time, so that
one said in the past stands where it belongs; the bot is not told of what it may not see, in neither way.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from tests.kit.patience import SECONDS
from tests.platforms.discord.deeds import GENERAL, GUILD, OWNER, bot_id
from tests.platforms.discord.model import (
    DM,
    EPHEMERAL,
    EVERYTHING,
    HAS_THREAD,
    JSON,
    MEMBER,
    NEWS,
    NEWS_THREAD,
    PRIVATE_THREAD,
    PUBLIC_THREAD,
    REPLY,
    SEND,
    SEND_IN_THREADS,
    TEXT,
    THREAD_STARTER,
    VIEW,
    Channel,
    File,
    Guild,
    Interaction,
    Message,
    Person,
    Refused,
    Snowflakes,
    made_at,
    mentioned,
    stamp,
)
from tests.platforms.pulse import Pulse

GUILDS, GUILD_MESSAGES, DM_MESSAGES, MESSAGE_CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15
GUILD_REACTIONS, DM_REACTIONS = 1 << 10, 1 << 13
#: Intents that have to be switched on for an application: members, presences, message content.
PRIVILEGED = 1 << 1 | 1 << 8 | MESSAGE_CONTENT
_CONTENT_FLAG, _COMMANDS_FLAG = 1 << 19, 1 << 23


class Dispatch(Protocol):
    """Tell whoever listens; `intents` are what they must have asked for (0: nothing), `bare` is told without content."""

    def __call__(self, event: str, data: JSON, intents: int, bare: JSON | None = None) -> None: ...


class World:
    """`now` is in seconds UTC; `base_url` is where files are had from."""

    def __init__(self, token: str, *, now: Callable[[], float], base_url: str, pulse: Pulse, tell: Dispatch) -> None:
        self.now = now
        self.base_url = base_url
        self.pulse = pulse
        self.snowflakes = Snowflakes(now)
        self.me = Person(bot_id(token), "Remora", is_bot=True)
        self.reads_messages = True
        self.people: dict[int, Person] = {self.me.id: self.me}
        self.guilds: dict[int, Guild] = {}
        self.channels: dict[int, Channel] = {}
        self.files: dict[int, File] = {}
        self.interactions: dict[int, Interaction] = {}
        self.tokens: dict[str, Interaction] = {}
        self.commands: dict[int | None, list[JSON]] = {None: []}
        self.puts: Counter[int | None] = Counter()
        self.creates: Counter[int | None] = Counter()
        self.create_limit = 200
        self.create_status = 400
        self.typing: list[int] = []
        self.marks: list[JSON] = []  # the bot's reactions, in their order
        self.violations: list[JSON] = []
        self.deduplicated = 0
        #: Discord itself waits for three seconds.
        self.answer_seconds = SECONDS
        self.nonce_seconds = 300.0
        self._tell = tell
        self.add_guild(GUILD, "Guild")
        self.add_channel(self.guilds[GUILD], "general", channel_id=GENERAL)

    # Things and their absence.

    def person(self, user: int, **known: Any) -> Person:
        """The person with this id, who comes into being; what is `known` and not None is set."""
        person = self.people.setdefault(user, Person(user, f"User {user}"))
        for name, value in known.items():
            if value is not None:
                setattr(person, name, value)
        return person

    def dm(self, user: int) -> Channel:
        """The direct chat of a person with the bot."""
        for channel in self.channels.values():
            if channel.type == DM and channel.recipient == user:
                return channel
        person = self.person(user)
        channel = Channel(id=self.snowflakes.next(), type=DM, recipient=person.id)
        self.channels[channel.id] = channel
        return channel

    def add_guild(self, guild_id: int | None, name: str) -> Guild:
        """A guild with the bot in it; of an earlier one under this id it is the return, or the outage's end."""
        number = self.snowflakes.next() if guild_id is None else guild_id
        guild = self.guilds.get(number)
        if guild is None:
            guild = self.guilds[number] = Guild(number, name, self.person(OWNER).id, self.snowflakes.next())
        back = {"unavailable": False} if guild.down else {}
        guild.gone = guild.down = False
        self._tell("GUILD_CREATE", {**self.guild_wire(guild), **back}, GUILDS)
        return guild

    def remove_guild(self, guild: Guild, *, unavailable: bool = False) -> None:
        """The bot is thrown out, or (`unavailable`) Discord has an outage there."""
        guild.gone, guild.down = not unavailable, unavailable
        told: JSON = {"id": str(guild.id), **({"unavailable": True} if unavailable else {})}
        self._tell("GUILD_DELETE", told, GUILDS)

    def add_channel(
        self, guild: Guild, name: str, *, channel_id: int | None = None, kind: int = TEXT, denied: int = 0
    ) -> Channel:
        number = self.snowflakes.next() if channel_id is None else channel_id
        channel = Channel(id=number, type=kind, name=name, guild=guild.id, denied=denied)
        self.channels[channel.id] = channel
        self._tell("CHANNEL_CREATE", self.channel_wire(channel), GUILDS)
        return channel

    def open_thread(
        self,
        parent: Channel,
        name: str,
        *,
        by: Person,
        starter: Message | None = None,
        private: bool = False,
        at: float | None = None,
    ) -> Channel:
        """A thread, from a message or from nothing; in a forum, its first message is yet to come."""
        kind = NEWS_THREAD if parent.type == NEWS else PRIVATE_THREAD if private else PUBLIC_THREAD
        number = self.snowflakes.next(at) if starter is None else starter.id
        if number in self.channels:
            raise Refused(400, 160004, "A thread has already been created for this message")
        thread = Channel(id=number, type=kind, name=name, guild=parent.guild, parent=parent.id, owner=by.id)
        self.channels[thread.id] = thread
        joined = {"id": str(thread.id), "user_id": str(self.me.id), "join_timestamp": stamp(self.now()), "flags": 1}
        self._tell("THREAD_CREATE", {**self.channel_wire(thread), "newly_created": True, "member": joined}, GUILDS)
        if starter is not None:
            starter.flags |= HAS_THREAD
            starter.extra["thread"] = self.channel_wire(thread)
            reference = {"channel_id": str(parent.id), "message_id": str(starter.id), "guild_id": str(parent.guild)}
            first = Message(
                id=self.snowflakes.next(),
                channel=thread.id,
                author=by,
                content="",
                type=THREAD_STARTER,
                reference=reference,
            )
            self.post(thread, first)
        return thread

    def set_thread(self, thread: Channel, *, archived: bool | None = None, locked: bool | None = None) -> None:
        thread.archived = thread.archived if archived is None else archived
        thread.locked = thread.locked if locked is None else locked
        thread.archive_changed = self.now()
        self._tell("THREAD_UPDATE", self.channel_wire(thread), GUILDS)

    def delete_channel(self, channel: Channel) -> None:
        channel.deleted = True
        if channel.is_thread:
            names = {"id": channel.id, "guild_id": channel.guild, "parent_id": channel.parent}
            told = {name: str(number) for name, number in names.items()}
            self._tell("THREAD_DELETE", {**told, "type": channel.type}, GUILDS)
            return
        for thread in self.channels.values():
            if thread.parent == channel.id:
                thread.deleted = True
        self._tell("CHANNEL_DELETE", self.channel_wire(channel), GUILDS)

    def deny(self, channel: Channel, denied: int) -> None:
        """Sets what the bot may not do in a channel, from now on."""
        channel.denied = denied
        self._tell("CHANNEL_UPDATE", self.channel_wire(channel), GUILDS)

    # Messages.

    def post(self, channel: Channel, message: Message) -> Message:
        """A new message; `mentions` are found in its text. Whoever may see it is told."""
        people, roles, everyone = mentioned(message.content)
        message.mentions = [one for one in (*message.mentions, *people) if one in self.people]
        message.mentions = list(dict.fromkeys(message.mentions))
        message.role_mentions = [one for one in roles if any(one == guild.role for guild in self.guilds.values())]
        message.everyone = everyone and message.author is not self.me
        message.changed_at = self.now()
        channel.messages[message.id] = message
        for file in message.files:
            self.files[file.id] = file
        if not message.flags & EPHEMERAL:
            channel.last_message = max(channel.last_message or 0, message.id)
            self._told(channel, "MESSAGE_CREATE", message)
        self.pulse.beat()
        return message

    def edit(self, message: Message, **changed: Any) -> None:
        """Change a message; a new text is found in `edits` later."""
        if "content" in changed and not message.loading:
            message.edits.append(message.content)
            message.edited_at = self.now()
        for name, value in changed.items():
            setattr(message, name, value)
        people, roles, _ = mentioned(message.content)
        message.mentions = [one for one in people if one in self.people]
        message.role_mentions = [one for one in roles if any(one == guild.role for guild in self.guilds.values())]
        message.changed_at = self.now()
        for file in message.files:
            self.files[file.id] = file
        if not message.flags & EPHEMERAL:
            self._told(self.channels[message.channel], "MESSAGE_UPDATE", message)
        self.pulse.beat()

    def delete(self, channel: Channel, messages: Sequence[Message], *, bulk: bool = False) -> None:
        """Messages go; one event for each, or one for all."""
        for message in messages:
            message.deleted = True
        place = {"channel_id": str(channel.id), **({"guild_id": str(channel.guild)} if channel.guild else {})}
        intents = GUILD_MESSAGES if channel.guild else DM_MESSAGES
        shown = [message for message in messages if not message.flags & EPHEMERAL]
        if self.sees(channel) and shown:
            if bulk:
                self._tell("MESSAGE_DELETE_BULK", {"ids": [str(message.id) for message in shown], **place}, intents)
            else:
                for message in shown:
                    self._tell("MESSAGE_DELETE", {"id": str(message.id), **place}, intents)
        self.pulse.beat()

    def react(self, channel: Channel, message_id: int, emoji: str, *, user: int, gone: bool) -> None:
        """A person reacts to a message, or takes that back; nothing is kept of it."""
        told: JSON = {
            "user_id": str(user),
            "channel_id": str(channel.id),
            "message_id": str(message_id),
            "burst": False,
        }
        told |= {"emoji": {"id": None, "name": emoji}, "type": 0}
        if channel.guild is not None:
            told["guild_id"] = str(channel.guild)
        name = "MESSAGE_REACTION_REMOVE" if gone else "MESSAGE_REACTION_ADD"
        if self.sees(channel):
            self._tell(name, told, GUILD_REACTIONS if channel.guild else DM_REACTIONS)
        self.pulse.beat()

    def interact(self, interaction: Interaction) -> Interaction:
        """A person does something that only this bot is told of."""
        self.interactions[interaction.id] = self.tokens[interaction.token] = interaction
        self._tell("INTERACTION_CREATE", self.interaction_wire(interaction), 0)
        return interaction

    def new_interaction(self, kind: int, user: int, channel: Channel, data: JSON, message: int | None) -> Interaction:
        number = self.snowflakes.next()
        return Interaction(
            id=number,
            token=secrets.token_urlsafe(64),
            kind=kind,
            user=self.person(user).id,
            channel=channel.id,
            data=data,
            message=message,
            made_at=self.now(),
        )

    def history(self, channel: Channel) -> list[Message]:
        """Returns what stands in a channel for everybody, oldest first."""
        return sorted(
            (one for one in channel.messages.values() if not one.deleted and not one.flags & EPHEMERAL),
            key=lambda one: one.id,
        )

    # The bot's rights.

    def allowed(self, channel: Channel) -> int:
        if channel.guild is None:
            return MEMBER
        place = self.channels[channel.parent] if channel.is_thread and channel.parent in self.channels else channel
        return self.guilds[channel.guild].permissions & ~place.denied

    def sees(self, channel: Channel) -> bool:
        if channel.deleted:
            return False
        if channel.guild is not None and (self.guilds[channel.guild].gone or self.guilds[channel.guild].down):
            return False
        return bool(self.allowed(channel) & VIEW)

    def visible(self, channel_id: int) -> Channel:
        """A channel by its id. Raises `Refused` where the bot can't see it."""
        channel = self.channels.get(channel_id)
        if channel is None or channel.deleted:
            raise Refused(404, 10003, "Unknown Channel")
        if not self.sees(channel):
            raise Refused(403, 50001, "Missing Access")
        return channel

    def speakable(self, channel_id: int) -> Channel:
        """A channel in which the bot may say something now. Raises `Refused`."""
        channel = self.visible(channel_id)
        if channel.recipient is not None and self.people[channel.recipient].closed:
            raise Refused(403, 50007, "Cannot send messages to this user")
        if not self.allowed(channel) & (SEND_IN_THREADS if channel.is_thread else SEND):
            raise Refused(403, 50013, "Missing Permissions")
        if channel.locked and channel.archived:
            raise Refused(400, 50083, "Thread is archived")
        if channel.locked:
            raise Refused(400, 160005, "Thread is locked")
        return channel

    # Things as they are told.

    def channel_wire(self, channel: Channel) -> JSON:
        recipient = None if channel.recipient is None else self.people[channel.recipient]
        return channel.wire(recipient=recipient, bot=self.me.id)

    def guild_wire(self, guild: Guild) -> JSON:
        here = [one for one in self.channels.values() if one.guild == guild.id and not one.deleted]
        return {
            "id": str(guild.id),
            "name": guild.name,
            "owner_id": str(guild.owner),
            "roles": guild.roles(self.me),
            "channels": [self.channel_wire(one) for one in here if not one.is_thread],
            "threads": [
                self.channel_wire(one) for one in here if one.is_thread and not one.archived and self.sees(one)
            ],
            "members": [guild.member(self.me, bot=self.me.id, whole=True)],
            "member_count": 2 + len(guild.nicks),
            "joined_at": stamp(made_at(0)),
            "large": False,
            **{name: [] for name in ("emojis", "stickers", "features", "voice_states", "presences")},
            **{name: [] for name in ("stage_instances", "guild_scheduled_events", "soundboard_sounds")},
            **dict.fromkeys(("verification_level", "default_message_notifications", "explicit_content_filter"), 0),
            **dict.fromkeys(("mfa_level", "nsfw_level", "premium_tier", "system_channel_flags"), 0),
            "preferred_locale": "en-US",
        }

    def message_wire(self, message: Message, *, whole: bool = True) -> JSON:
        """A message as REST gives it; not `whole` without what the message content intent stands for."""
        channel = self.channels[message.channel]
        now = self.now()
        told: JSON = {
            "id": str(message.id),
            "channel_id": str(message.channel),
            "author": message.author.wire(),
            "content": message.content if whole else "",
            "timestamp": stamp(made_at(message.id)),
            "edited_timestamp": None if message.edited_at is None else stamp(message.edited_at),
            "tts": False,
            "mention_everyone": message.everyone,
            "mentions": [self.people[one].wire() for one in message.mentions],
            "mention_roles": [str(one) for one in message.role_mentions],
            "attachments": [f.wire(channel.id, base_url=self.base_url, now=now) for f in message.files if whole],
            "embeds": message.embeds if whole else [],
            "components": message.components if whole else [],
            "pinned": False,
            "type": message.type,
            "flags": message.flags,
        }
        if message.webhook is not None:
            told["webhook_id"] = str(message.webhook)
        if message.stickers and whole:
            told["sticker_items"] = [
                {"id": str(message.id + at), "name": name, "format_type": 1} for at, name in enumerate(message.stickers)
            ]
        if message.snapshots:
            told["message_snapshots"] = [{"message": one} for one in message.snapshots] if whole else []
        if message.interaction is not None:
            told |= {"interaction_metadata": message.interaction, "application_id": str(self.me.id)}
        if message.reply_to is not None:
            answered = channel.messages.get(message.reply_to)
            if answered is None or answered.deleted:
                told["referenced_message"] = None
            else:
                # Only one step back is told.
                earlier = self.message_wire(answered, whole=whole)
                told["referenced_message"] = {k: v for k, v in earlier.items() if k != "referenced_message"}
        if message.reference is not None:
            told["message_reference"] = message.reference
        return {**told, **message.extra}

    def reads(self, message: Message) -> bool:
        """Whether the bot gets a message's content without the intent: direct, its own, or one that names it."""
        channel = self.channels[message.channel]
        return channel.guild is None or message.author is self.me or self.me.id in message.mentions

    def interaction_wire(self, interaction: Interaction) -> JSON:
        channel, person = self.channels[interaction.channel], self.people[interaction.user]
        told: JSON = {
            "id": str(interaction.id),
            "application_id": str(self.me.id),
            "type": interaction.kind,
            "token": interaction.token,
            "version": 1,
            "data": interaction.data,
            "channel_id": str(channel.id),
            "channel": self.channel_wire(channel),
            "app_permissions": str(self.allowed(channel)),
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": {"0": str(channel.guild or 0)},
            "attachment_size_limit": 10 * 1024 * 1024,
            "context": 1 if channel.guild is None else 0,
        }
        if interaction.message is not None:
            told["message"] = self.message_wire(channel.messages[interaction.message])
        if channel.guild is None:
            return {**told, "user": person.wire()}
        guild = self.guilds[channel.guild]
        member = {**guild.member(person, bot=self.me.id, whole=True), "permissions": str(self.rights(guild, person.id))}
        partial = {"id": str(guild.id), "locale": "en-US", "features": []}
        return {**told, "guild_id": str(guild.id), "guild": partial, "guild_locale": "en-US", "member": member}

    def rights(self, guild: Guild, user: int) -> int:
        """Returns what a person may do in a guild."""
        return EVERYTHING if user == guild.owner or user in guild.admins else MEMBER

    def application_wire(self) -> JSON:
        """The bot's application, as READY and REST give it."""
        flags = _COMMANDS_FLAG | (_CONTENT_FLAG if self.reads_messages else 0)
        return {
            "id": str(self.me.id),
            "name": self.me.name,
            "icon": None,
            "description": "",
            "summary": "",
            "bot_public": True,
            "bot_require_code_grant": False,
            "verify_key": "0" * 64,
            "flags": flags,
            "team": None,
            "owner": self.person(OWNER).wire(),
            "rpc_origins": [],
            "interactions_endpoint_url": None,
            "integration_types_config": {},
        }

    def ready_wire(self) -> JSON:
        return {
            "v": 10,
            "user": {**self.me.wire(), "verified": True, "mfa_enabled": False, "email": None, "flags": 0},
            "guilds": [{"id": str(one.id), "unavailable": True} for one in self.guilds.values() if not one.gone],
            "application": {"id": str(self.me.id), "flags": self.application_wire()["flags"]},
            "resume_gateway_url": self.base_url.replace("http", "ws", 1) + "/gateway",
        }

    def guild_wires(self) -> Iterator[JSON]:
        """Yields the guilds that follow READY."""
        for guild in self.guilds.values():
            if not (guild.gone or guild.down):
                yield {**self.guild_wire(guild), "unavailable": False}

    def _told(self, channel: Channel, event: str, message: Message) -> None:
        if not self.sees(channel):
            return
        place: JSON = {}
        if channel.guild is not None:
            guild = self.guilds[channel.guild]
            place["guild_id"] = str(guild.id)
            if message.webhook is None:
                place["member"] = guild.member(message.author, bot=self.me.id)
        nonce = {} if message.nonce is None or event != "MESSAGE_CREATE" else {"nonce": message.nonce}
        told = {**self.message_wire(message), **place, **nonce}
        for one in told["mentions"]:
            if channel.guild is not None:
                person = self.people[int(one["id"])]
                one["member"] = self.guilds[channel.guild].member(person, bot=self.me.id)
        bare = None if self.reads(message) else {**told, **_stripped(self.message_wire(message, whole=False))}
        self._tell(event, told, GUILD_MESSAGES if channel.guild else DM_MESSAGES, bare)


def new_message(
    world: World,
    channel: Channel,
    author: Person,
    content: str,
    *,
    at: float | None = None,
    reply_to: int | None = None,
    **more: Any,
) -> Message:
    """A message that is not posted yet; with `reply_to` it answers that one."""
    if reply_to is not None:
        place = {"channel_id": str(channel.id), "message_id": str(reply_to), "type": 0}
        more["reference"] = {**place, **({"guild_id": str(channel.guild)} if channel.guild else {})}
        more.setdefault("type", REPLY)
    return Message(
        id=world.snowflakes.next(at), channel=channel.id, author=author, content=content, reply_to=reply_to, **more
    )


def _stripped(bare: JSON) -> JSON:
    """The fields that the message content intent stands for, as they are told without it."""
    return {name: bare[name] for name in ("content", "attachments", "embeds", "components")}
