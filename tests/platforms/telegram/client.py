"""The acts of a test on the platform: speak, press, block, break and look.

Invariants: one HTTP request per call; nothing is kept here but the address; what the platform refuses raises
`ControlError` with its words.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from tests.platforms.client import JSON, PlatformControl, started

Kind: TypeAlias = Literal["private", "group", "supergroup", "channel"]
#: How a person or an admin changes the bot's place in a chat. `deactivate` sends no update, as on Telegram.
Membership: TypeAlias = Literal["block", "unblock", "kick", "leave", "add", "deactivate"]
#: The kinds of faults. `reset` is a TCP reset, `close` an orderly end, `cut` half of the answer's bytes and then the
#: end, `flood` a 429 that starts a real retry_after, `delay` waits and goes on as if nothing were, `drip` gives a
#: download piece by piece over `seconds`.
Deed: TypeAlias = Literal[
    "status", "flood", "garbage", "empty", "hang", "reset", "close", "cut", "drip", "delay", "kill", "refuse"
]

#: What is no file and has no words beside it.
_THINGS = ("location", "venue", "contact", "poll", "dice")
FileKind: TypeAlias = Literal["photo", "document", "voice", "audio", "video", "video_note", "animation", "sticker"]

#: The bot of a server that is told of no other.
TOKEN = "4242:remora-test-bot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The outcome of a person's deed. `update_id` is None when the bot is not told of it."""

    chat: int
    message_id: int
    update_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that somebody sends, with `text` as its caption.

    `file_size` in bytes is what Telegram says of it where that is more than `data` (which is filled up with zeros, up
    to what can be downloaded); without `size_told` it says nothing. A photo of `pixels` (width, height; 1280 x 960
    unless said) comes in all sizes Telegram makes of it: the last holds `data`, a smaller one its measure as "320x240".
    `seconds` is how long it plays; `emoji` is a sticker's.
    """

    kind: FileKind
    data: bytes = b""
    text: str = ""
    filename: str | None = None
    mime: str | None = None
    file_size: int | None = None
    size_told: bool = True
    pixels: tuple[int, int] | None = None
    seconds: int = 2
    emoji: str = "👍"

    def wire(self) -> JSON:
        """Returns the file as the platform is told of it, without the caption."""
        told = {name: getattr(self, name) for name in self.__slots__ if name not in ("data", "text")}
        given = {name: value for name, value in told.items() if value is not None}
        return {**given, "data": base64.b64encode(self.data).decode()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Album:
    """The parts of an album that was sent: a late part is said with `media_group`."""

    chat: int
    media_group: str
    parts: tuple[Said, ...]


class Control(PlatformControl):
    """The platform as one bot's tests see it. `url` is also the base address for Bot API clients."""

    # People's acts.

    async def say(
        self,
        text: str = "",
        *,
        user: int = 1001,
        file: File | None = None,
        filename: str | None = None,
        mime: str | None = None,
        **more: Any,
    ) -> Said:
        """Writes as a person. Without `chat` it is their private chat with the bot.

        An unknown chat comes into being: by its id's sign and size private, group or (-100…) supergroup, unless `kind`
        says. `photo`, `document`, `voice` … are the bytes of a file, of which `text` is the caption; `file` is for what
        these short forms can't say. `location` is (latitude, longitude), `venue` the name of a place, `contact` a name, `poll` a question, `dice` its emoji; these have no
        words beside them. `sender_chat` is who speaks in a person's stead (an anonymous admin:
        the group's own id). `sent_at` is in seconds UTC. `entities` replace those that are found in the text.
        `extra` is laid over the message as the bot gets it. `_say` in control.py names the others.
        """
        for kind in get_args(FileKind):
            if (data := more.pop(kind, None)) is not None:
                file = File(kind=kind, data=data, filename=filename, mime=mime)
        thing = {name: more.pop(name) for name in _THINGS if name in more}
        words = text or ("" if file is None else file.text)
        wire = None if file is None else file.wire()
        return Said(**await self.ask("say", text=words, user=user, file=wire, thing=thing, **more))

    async def edit(
        self, message_id: int, text: str, *, chat: int, entities: Sequence[JSON] | None = None
    ) -> int | None:
        """Edits what a person wrote; returns the update's id."""
        return _update(await self.ask("edit", chat=chat, message_id=message_id, text=text, entities=entities))

    async def album(self, files: Sequence[File], *, pause: float = 0, user: int = 1001, **more: Any) -> Album:
        """Sends 2 to 10 files as one message of a person, which bots get as an update for each part.

        With `pause` so many seconds lie between the parts, so that polls come between them; two albums at a time then
        come interleaved. Photos and videos, documents, and audio each stand among themselves.
        """
        given = [{"text": one.text, "file": one.wire()} for one in files]
        sent = await self.ask("album", parts=given, pause=pause, user=user, **more)
        parts = tuple(Said(**one) for one in sent["parts"])
        return Album(chat=parts[0].chat, media_group=sent["media_group"], parts=parts)

    async def press(
        self,
        message_id: int,
        data: str | None = None,
        *,
        label: str | None = None,
        chat: int,
        user: int = 1001,
        inaccessible: bool = False,
    ) -> str:
        """Presses a button as a person, by its data or its label; returns the callback's id.

        The button must be there: a stale one is pressed by its data with `inaccessible`, where the bot is not shown
        the message.
        """
        pressed = await self.ask(
            "press", chat=chat, message_id=message_id, data=data, label=label, user=user, inaccessible=inaccessible
        )
        return str(pressed["callback_id"])

    async def react(self, message_id: int, *emojis: str, chat: int, user: int = 1001) -> int | None:
        """Sets a person's reactions to a message, or takes them back; returns the update's id if the bot hears of it."""
        told = await self.ask("react", chat=chat, message_id=message_id, user=user, emojis=emojis)
        return _update(told)

    async def answered(self, callback_id: str) -> JSON | None:
        """Returns what answerCallbackQuery said to a press, or None."""
        callback = (await self.state())["callbacks"].get(callback_id)
        return callback["answer"] if callback else None

    async def menu(self, user: int = 1001, *, chat: int | None = None, language: str | None = None) -> dict[str, str]:
        """Returns what a person is offered behind the slash, commands with descriptions in their order.

        Without `chat` it is their private chat. `language` is that of their client ("de", "zh-hans"), else the one
        they have spoken with. Admins of a group are those whose `status` says so.
        """
        seen = await self.ask("menu", user=user, chat=user if chat is None else chat, language=language)
        return {one["command"]: one["description"] for one in seen["commands"]}

    async def drafts(self, chat: int, *, standing: bool = False) -> list[str]:
        """The texts of all drafts the bot showed in a chat, in order; `standing`: only what can be read there now."""
        state = await self.state()
        return [one["text"] for one in state["standing" if standing else "drafts"] if one["chat"] == chat]

    async def member(self, chat: int, change: Membership, *, user: int = 1001) -> int | None:
        """Blocks, lets in again, kicks or adds the bot; returns the update's id. `chat` is the person in private."""
        return _update(await self.ask("member", chat=chat, change=change, user=user))

    async def status(self, chat: int, user: int, status: str) -> None:
        """Makes a person creator, administrator, member … of a group."""
        await self.ask("status", chat=chat, user=user, status=status)

    async def group(
        self,
        chat: int,
        *,
        kind: Kind = "supergroup",
        title: str = "Group",
        forum: bool = False,
        bot_admin: bool = False,
    ) -> None:
        """Makes a group with the bot in it, of which no update tells."""
        await self.ask("group", chat=chat, kind=kind, title=title, forum=forum, bot_admin=bot_admin)

    async def topic(self, chat: int, name: str = "Topic", *, user: int = 1001) -> int:
        """Opens a topic as somebody (a group becomes a forum; `group` makes it none again); returns its thread id."""
        return int((await self.ask("topic", chat=chat, name=name, user=user))["thread"])

    async def close_topic(self, chat: int, thread: int, *, user: int = 1001) -> None:
        await self.ask("close_topic", chat=chat, thread=thread, user=user)

    async def delete_topic(self, chat: int, thread: int) -> None:
        await self.ask("delete_topic", chat=chat, thread=thread)

    async def migrate(self, chat: int, *, to: int | None = None) -> int:
        """Makes a supergroup of a group; returns its new id."""
        return int((await self.ask("migrate", chat=chat, to=to))["chat"])

    async def channel_post(self, text: str, *, chat: int = -1009999, title: str = "Channel") -> Said:
        return Said(**await self.ask("channel_post", text=text, chat=chat, title=title))

    async def delete(self, message_id: int, *, chat: int) -> None:
        """Deletes a message as a person; bots are not told."""
        await self.ask("delete", chat=chat, message_id=message_id)

    # Telegram's acts.

    async def inject(self, update: JSON) -> int:
        """Gives out any update, parsable or not; returns its id, which is made unless given."""
        return int((await self.ask("inject", update=update))["update_id"])

    async def redeliver(self, *, pending: int = 0, confirmed: int = 0) -> list[int]:
        """Gives out the last updates a second time under their ids: so many waiting ones, so many confirmed ones."""
        return list((await self.ask("redeliver", pending=pending, confirmed=confirmed))["update_ids"])

    async def reorder(self, *, seed: int = 0) -> None:
        await self.ask("reorder", seed=seed)

    async def number_updates(self, next_id: int) -> None:
        """Sets the id that the next update gets; lower than the last is what happens after a week without any."""
        await self.ask("number_updates", next_id=next_id)

    async def bot(self, **fields: Any) -> None:
        """Change what getMe says: username, first_name, can_read_all_group_messages …"""
        await self.ask("bot", fields=fields)

    async def allow_drafts(self, *, allowed: bool = True) -> None:
        """Sets whether this bot may show drafts; else sendMessageDraft is refused, as for bots without the right to."""
        await self.ask("allow_drafts", allowed=allowed)

    async def webhook(self, *to: str, second: float | None = None, patience: float | None = None) -> None:
        """Sets how updates are posted to the address that setWebhook named, of which the path is kept.

        `to` ("http://127.0.0.1:8080") takes the place of its scheme, host and port; without it the host is never found.
        Of several each attempt calls another one.
        `second` is how long a second of the growing waits between two attempts is here (0.05), `patience` the real
        seconds an answer may take (20). What waits is tried at once. See state()["webhook"] for what was tried.
        """
        await self.ask("webhook", to=to or None, second=second, patience=patience)

    async def flood(self, *, on: bool = True, **rates: float) -> None:
        """Turns flood control on, with the rates of limits.Rates, or off."""
        await self.ask("flood", on=on, **rates)

    # A test's view.

    async def texts(self, chat: int, *, by_bot: bool = True, since: int = 0) -> list[str]:
        """The texts that stand in a chat, in order, without deleted ones and the first `since`."""
        return list((await self.ask("texts", chat=chat, by_bot=by_bot, since=since))["texts"])

    async def files(self, chat: int) -> list[tuple[str, bytes]]:
        """The files that the bot's messages in a chat show, in order: names and bytes. One that came twice is twice there."""
        sent = (await self.ask("files", chat=chat))["files"]
        return [(name, base64.b64decode(data)) for name, data in sent]


def running(*arguments: str, token: str = TOKEN) -> AbstractAsyncContextManager[Control]:
    """The platform in a process of its own, ended with the block. `arguments` are those of the command line."""
    return started(Control, "tests.platforms.telegram", token, arguments)


def _update(answer: JSON) -> int | None:
    update_id = answer["update_id"]
    return None if update_id is None else int(update_id)
