"""Waits until the person who sets a bot up has shown who they are: by a code, sent to the bot in private.

Invariants: the code is never written anywhere and works once, in a private chat. Three wrong codes shut a person out.
"""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from itertools import count

import structlog

from channels.base import Channel, ChannelError, Host, Inbound, Outbound
from channels.ids import format_of
from gateway.pipeline.policy import code_in
from languages import Language

log = structlog.get_logger(__name__)

#: Wrong codes after which a person is ignored.
TRIES = 3
#: Wrong codes of all people together after which everybody is ignored, as in `memory.people.access`.
GUESSES = 100
#: Seconds in which a platform is usually reached.
_CONNECTING = 5.0
#: Seconds that the first person has to send the code.
PAIRING_SECONDS = 600.0
#: Seconds after the greeting in which the channel confirms the code to its platform with its next request for
#: messages. Without the confirmation, the code would reach the bot once more as a message.
_ACKNOWLEDGE = 1.0
_TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "welcome": "That's the right code. You can talk to me now, and you are my admin. I answer as soon as I am "
        "started with `remora serve`.",
        "wrong": "That is not the code shown in the terminal.",
        "hint": "I am being set up. If you are setting me up, please send me the code shown in the terminal.",
    },
    "zh": {
        "welcome": "代码正确。你现在可以跟我聊天了，并且是我的管理员。用 `remora serve` 启动后我就会回答。",
        "wrong": "这不是终端里显示的代码。",
        "hint": "我正在设置中。如果是你在设置，请把终端里显示的代码发给我。",
    },
}


async def pair(
    channel: Channel,
    *,
    code: str,
    language: Language,
    say: Callable[[str], None],
    seconds: float = PAIRING_SECONDS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Inbound | None:
    """Runs `channel` until a person sends `code` (made by `new_code`) in private. Returns their message.

    Returns None after `seconds`. The person who paired is greeted; everybody else is told that the bot is being set up.
    `say` is called with trouble of the platform. Raises `ChannelError` if the platform no longer lets the bot in.
    """
    host = _Setup(channel, code, _TEXTS.get(language, _TEXTS["en"]))
    paired = asyncio.ensure_future(host.paired.wait())
    receiving = asyncio.ensure_future(channel.run(host))
    noticing = asyncio.ensure_future(_troubles(channel, say, sleep))
    tasks = (paired, receiving, noticing)
    try:
        await asyncio.wait({paired, receiving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if host.first is not None:
            await host.answer(host.first, "welcome")
            await sleep(_ACKNOWLEDGE)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    if host.first is None and isinstance(results[1], ChannelError):
        raise results[1]
    return host.first


class _Setup(Host):
    """The host of a bot that nobody may talk to yet."""

    def __init__(self, channel: Channel, code: str, texts: dict[str, str]) -> None:
        self._channel = channel
        self._code = code
        self._texts = texts
        self._wrong: Counter[str] = Counter()
        self._told: set[str] = set()
        self._ids = count(1)
        self._kept: dict[str, str] = {}
        self.first: Inbound | None = None
        self.paired = asyncio.Event()

    async def kept(self, channel: str, prefix: str = "") -> Mapping[str, str]:
        return {name: value for name, value in self._kept.items() if name.startswith(prefix)}

    async def keep(self, channel: str, values: Mapping[str, str | None]) -> None:
        # Kept for this run only: the bot that is started later begins anew.
        for name, value in values.items():
            if value is None:
                self._kept.pop(name, None)
            else:
                self._kept[name] = value

    async def on_inbound(self, inbound: Inbound) -> None:
        person = inbound.author_id
        spoken = not (inbound.forwarded or inbound.edited or inbound.pressed is not None)
        known = format_of(self._channel.platform).is_person(person)
        if self.first is not None or inbound.chat_kind != "private" or not known or not spoken:
            return
        code = code_in(inbound.text)
        if code is None:
            if person not in self._told:
                self._told.add(person)
                await self.answer(inbound, "hint")
        elif self._wrong[person] >= TRIES or self._wrong.total() >= GUESSES:
            log.warning("pairing.refused", person=person)
        elif hmac.compare_digest(code.encode(), self._code.encode()):
            self.first = inbound
            self.paired.set()
        else:
            self._wrong[person] += 1
            await self.answer(inbound, "wrong")

    async def answer(self, inbound: Inbound, text: str) -> None:
        chunks = self._channel.chunks(self._texts[text], markdown=True)
        try:
            for chunk in chunks:
                await self._channel.send(
                    Outbound(
                        id=next(self._ids),
                        place=inbound.place,
                        text=chunk.text,
                        markup=chunk.markup,
                        ticket=inbound.ticket,
                        made_at=inbound.sent_at,
                    )
                )
        except ChannelError as error:
            # The person who sets the bot up reads the terminal; the answer in the chat is a courtesy.
            log.warning("pairing.unanswered", error=str(error))


async def _troubles(channel: Channel, say: Callable[[str], None], sleep: Callable[[float], Awaitable[None]]) -> None:
    """Reports each new trouble of the channel once, but not that it is about to connect."""
    told = ""
    await sleep(_CONNECTING)
    while True:
        trouble = channel.health().trouble
        if trouble and trouble != told:
            say(trouble)
        told = trouble
        await sleep(0.5)
