"""The visitors of the page: the senders of requests, and the messages sent in their name.

Invariants: only its cookie tells the sender of a request. The policy is asked at each request about the account that
signed in, and the account on the page must still be one person with it, so a block, an unlink or a sign-out ends a
session at once. An admin's rights are those of that account, for `_ADMIN_MS` after the sign-in, and on forms alone.
Every change is a message on the visitor's own channel: it passes policy, limits and masks like any other, and a
repeated form is the same message.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from channels.base import Channel, Inbound, Place
from channels.web import PageItem, WebChannel, said_key
from gateway.config.loading import FORMS, WEB_PREFIX, Config
from gateway.pipeline.course import Agent
from gateway.pipeline.store import Roster, Store, where_said, who_said
from gateway.reception.router import Router
from memory.context import Context
from memory.people.visits import SignedIn, Visits

#: The path of the first conversation, which has no thread.
FIRST: Final = "main"
#: Milliseconds after the sign-in for which an admin has their rights on the page.
_ADMIN_MS: Final = 3_600_000
#: Sessions whose receipt waits to be shown.
_RECEIPTS: Final = 1_000
#: The file in which `remora web` leaves a code for the running process, in the data folder.
CODE_FILE: Final = "web-code"
#: Seconds for which such a code is taken.
_CODE_SECONDS: Final = 600
#: The operator's channel: a person who may write into the data folder sits at the machine.
_OPERATOR: Final = "console"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A person who signed in to an agent's page; `admin_until` ends an admin's rights (milliseconds UTC)."""

    session: SignedIn
    token: str
    name: str
    agent: str
    channel: WebChannel
    store: Store
    served: Agent
    context: Context
    now: int
    admin_until: int | None = None

    @property
    def is_admin(self) -> bool:
        return self.admin_until is not None and self.now < self.admin_until

    @property
    def is_operator(self) -> bool:
        return self.session.channel == _OPERATOR

    @property
    def account(self) -> str:
        return account(self.session.channel, self.session.user_id)

    def place(self, thread: str | None) -> Place:
        """Returns one of the visitor's conversations; None is the first."""
        return Place(channel=self.channel.id, chat=self.account, thread=thread)

    def inbound(self, *, thread: str | None, nonce: str, language: str = "") -> Inbound:
        """Returns a message of the visitor, still without words. The same nonce is the same message."""
        return Inbound(
            channel=self.channel.id,
            platform=self.channel.platform,
            bot_id=self.channel.id,
            update_key=f"{self.account}:{nonce}",
            chat=self.account,
            chat_kind="private",
            author_id=self.account,
            author_name=self.name,
            message_id=nonce,
            text="",
            sent_at=self.now,
            thread=thread,
            language=language,
            as_admin=self.is_admin and thread == FORMS,
        )

    def nonce(self) -> str:
        word = secrets.token_hex(8)
        return f"{word}.{self._sign(word)}"

    def is_own(self, nonce: str) -> bool:
        word, _, signed = nonce.partition(".")
        return bool(word) and hmac.compare_digest(signed.encode("utf-8", "replace"), self._sign(word).encode())

    @property
    def stream(self) -> str:
        """A name for this session with this agent, by which its tabs in a browser know each other."""
        return self._sign(f"stream {self.agent}")

    def _sign(self, word: str) -> str:
        return hmac.digest(self.token.encode(), word.encode("utf-8", "replace"), "sha256").hex()[:32]


class Visitors:
    def __init__(
        self, *, config: Config, roster: Roster, channels: Mapping[str, Channel], router: Router, now: Callable[[], int]
    ) -> None:
        self._config = config
        self.roster = roster
        self._all = channels
        self._channels = {name: channel for name, channel in channels.items() if isinstance(channel, WebChannel)}
        self._router = router
        self._now = now
        self._forms: WeakValueDictionary[Place, asyncio.Lock] = WeakValueDictionary()
        self._receipts: dict[int, list[PageItem]] = {}

    @property
    def agents(self) -> tuple[str, ...]:
        return self._config.page_agents

    @property
    def visits(self) -> Visits:
        return self.roster.stores[self.roster.default].memory.visits

    async def of(self, token: str | None, *, visits: bool) -> Visitor | None:
        """Returns the visitor with this cookie, if they may speak now, else None.

        The request `visits` if a person makes it, and not a script that asks by itself.
        """
        if not token or len(token) > 200:
            return None
        session = await self.visits.session(token)
        if session is None:
            return None
        if visits and not self.visits.is_noted(session):
            session = await self.visits.visited(session)
        return await self._visitor(session, token)

    async def _visitor(self, session: SignedIn, token: str) -> Visitor | None:
        agent = session.agent if session.agent in self.agents else self.agents[0]
        channel = self._channels[f"{WEB_PREFIX}{agent}"]
        own = account(session.channel, session.user_id)
        inbound = Inbound(
            channel=channel.id, platform=channel.platform, bot_id=channel.id, update_key="", chat=own,
            chat_kind="private", author_id=own, author_name="", message_id="", text="", sent_at=self._now(),
        )  # fmt: skip
        if not await self._router.may_speak(inbound):
            return None
        store, name = self.roster.store_for(inbound), self.roster.name_for(inbound)
        who = {"platform": session.platform, "user_id": session.user_id, "page": channel.platform, "page_id": own}
        called = await store.memory.visits.name(**who)
        if called is None:
            return None
        inbound = replace(inbound, author_name=called)
        served = self.roster.agents[name]
        where, speaker = where_said(inbound, served.spec), who_said(inbound)
        # Known since the sign-in, unless another agent serves the page now.
        context = await store.memory.identities.known(where, speaker) or await store.memory.identities.context(
            where, speaker
        )
        lists = self._router.is_admin(replace(inbound, as_admin=True))
        return Visitor(
            session=session, token=token, name=called, agent=agent, channel=channel, store=store, served=served,
            context=context, now=self._now(), admin_until=session.created_at + _ADMIN_MS if lists else None,
        )  # fmt: skip

    # Signing in -------------------------------------------------------------------------------------------------

    async def named(self, code: str) -> str | None:
        account = await self._of_code(code)
        if account is None:
            return None
        _, platform, user_id = account
        return await self.roster.stores[self.agents[0]].memory.visits.called(platform, user_id)

    async def sign_in(self, code: str) -> str | None:
        """Spends a code; returns the token of the new session, or None if the code is not open."""
        await self._of_code(code)
        token = secrets.token_urlsafe(32)
        session = await self.visits.sign_in(code, token)
        if session is None:
            return None
        own = account(session.channel, session.user_id)
        who = {"platform": session.platform, "user_id": session.user_id, "page": "web", "page_id": own}
        for agent in self.agents:
            await self.roster.stores[agent].memory.visits.join(**who)
        # Makes the visitor's place known, so that reading a page changes nothing.
        return token if await self._visitor(session, token) is not None else None

    async def _of_code(self, code: str) -> tuple[str, str, str] | None:
        """Returns the account that a code is for: channel, platform and user id. Takes over the operator's code."""
        person = await asyncio.to_thread(_left_code, self._config.data_dir / CODE_FILE, code)
        if person is not None:
            await self.visits.open_code(
                code, channel=_OPERATOR, platform=_OPERATOR, user_id=person, agent=self.agents[0]
            )
        return await self.visits.account_of(code)

    # Speaking ---------------------------------------------------------------------------------------------------

    def buttons_of(self, channel: str) -> Channel | None:
        channel_there = self._all.get(channel)
        return channel_there if channel_there is not None and channel_there.capabilities.buttons else None

    def address_of(self, visitor: Visitor, session_key: str, row_id: int, message_id: str | None) -> str:
        """Returns the address of a message, on the page or where a platform shows it; "" if it has none."""
        place = Place.from_session_key(session_key)
        if place == visitor.place(place.thread):
            return "" if place.thread == FORMS else f"/chat/{place.thread or FIRST}?at={row_id}#at"
        channel = self._all.get(place.channel)
        return "" if channel is None or message_id is None else channel.link(place, message_id) or ""

    async def press(self, inbound: Inbound) -> bool:
        """Presses a button in a chat elsewhere; returns False if its author may not speak there. Raises `NotTaken`."""
        if not await self._router.may_speak(inbound):
            return False
        await self._router.on_inbound(inbound)
        return True

    async def answered(self, visitor: Visitor, inbound: Inbound) -> list[PageItem]:
        """Says something that no conversation is to show; returns the answer, none to a form sent before.

        Raises `NotTaken`.
        """
        place = inbound.place
        async with self._forms.setdefault(place, asyncio.Lock()):
            with visitor.channel.tab(place) as tab:
                visitor.store.delivery.wake(place.session_key)
                await visitor.channel.say(inbound)
                await self._router.settled(place)
                held = {item.key: item for item in visitor.channel.held(place)}
                answers = [item for item in tab.taken() if not (item.mine or item.growing)]
            said = said_key(inbound.message_id)
            visitor.channel.drop(place, None if inbound.thread == FORMS else {said, *(item.key for item in answers)})
        # A tab has the names of files alone.
        return [held.get(item.key, item) for item in answers]

    def keep(self, visitor: Visitor, items: list[PageItem]) -> None:
        """Keeps the answer to a form until the session shows it. A form sent twice does not remove it."""
        before = self._receipts.pop(visitor.session.id, [])
        self._receipts[visitor.session.id] = items or before
        if len(self._receipts) > _RECEIPTS:
            del self._receipts[next(iter(self._receipts))]

    def kept(self, visitor: Visitor) -> list[PageItem] | None:
        return self._receipts.pop(visitor.session.id, None)

    async def stop(self, place: Place, turn_id: int | None) -> bool:
        return await self._router.stop(place, turn_id)

    async def answers(self, visitor: Visitor, place: Place, *, seconds: float) -> None:
        with visitor.channel.tab(place), suppress(TimeoutError):
            visitor.store.delivery.wake(place.session_key)
            async with asyncio.timeout(seconds):
                await self._router.settled(place)


def account(channel: str, user_id: str) -> str:
    return f"{channel}.{user_id}"


def leave_code(folder: Path, code: str, person: str) -> None:
    """Leaves a code for the running process, in a file that only its owner can read."""
    path = folder / CODE_FILE
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(f"{code}\n{person}\n", "utf-8")


def _left_code(path: Path, code: str) -> str | None:
    """Returns the name with which the operator left this code, and takes it away; None if they left no such code."""
    try:
        state = path.lstat()
        if not stat.S_ISREG(state.st_mode) or state.st_mode & 0o077:
            return None
        left, person, *_ = [*path.read_text("utf-8").splitlines(), "", ""]
    except (OSError, ValueError):
        return None
    if time.time() - state.st_mtime > _CODE_SECONDS or not left or not person:
        return None
    if not hmac.compare_digest(left.encode(), code.encode("utf-8", "replace")):
        return None
    path.unlink(missing_ok=True)
    return person
