"""Telegram's own requests: updates posted to the address a bot has set, again and again until they are taken.

Invariants: an update leaves the queue when its post was answered with 2xx, and never otherwise; each lane (a chat,
a presser of buttons) has one update under way at a time, the oldest first; nothing but the address a test has given is
ever called. Lanes, waits and words are those of the Bot API server (its webhook actor): the first repetition comes at
once, the others after 2, 4, 8 … 60 seconds or the Retry-After of the answer, where a second is as long as a test says.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from urllib.parse import urlsplit, urlunsplit

import httpx

from tests.kit.patience import SECONDS
from tests.platforms.faults import Faults
from tests.platforms.ledger import Entry, Ledger
from tests.platforms.pulse import Pulse
from tests.platforms.telegram.faults import Fault
from tests.platforms.telegram.updates import JSON, Queue, Waiting

MOST_CONNECTIONS = 100
_LONGEST_WAIT = 60
_LOST = "Read timeout expired"


@dataclass(slots=True)
class Webhook:
    """The bot's settings beside the address, which its queue knows. `version` grows with every change."""

    secret: str = ""
    max_connections: int = 40
    error: str = ""
    error_at: float = 0
    version: int = 0

    def set(self, secret: str, max_connections: int) -> None:
        self.secret, self.max_connections = secret, max_connections
        self.error, self.error_at = "", 0
        self.version += 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """One post and its answer. `error` is what getWebhookInfo says of it, empty for a success."""

    update_id: int
    number: int
    at: float
    status: int | None
    error: str


class Deliveries:
    """Posts what waits while an address is set. `now` is in seconds UTC.

    `to` (scheme, host, port) is called in place of the host of that address, for a test's server has no certificate;
    without it no host is ever found. Of several one is called at random, and another after each failure, as a balancer
    does before replicas. `second` is how long one of Telegram's takes here, `patience` how many real
    seconds an answer may take.
    """

    def __init__(
        self,
        queue: Queue,
        webhook: Webhook,
        faults: Faults[Fault],
        ledger: Ledger,
        pulse: Pulse,
        now: Callable[[], float],
    ) -> None:
        self.to: Sequence[str] = ()
        self.second = 0.05
        self.patience = SECONDS
        self.attempts: list[Attempt] = []
        self.most_open = 0
        self._queue = queue
        self._webhook = webhook
        self._faults = faults
        self._ledger = ledger
        self._pulse = pulse
        self._now = now
        self._runner: asyncio.Task[None] | None = None
        self._open: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[Waiting, int] = {}
        self._not_before: dict[Waiting, float] = {}

    def start(self) -> None:
        """Begin, unless it has begun; it ends by itself when the address is taken away."""
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())

    def hurry(self) -> None:
        """Tries at once what waits for its next attempt."""
        self._not_before.clear()
        self._pulse.beat()

    async def aclose(self) -> None:
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)

    def state(self) -> JSON:
        """`attempts` oldest first, `most_open` at a time, and what the bot has set."""
        return {
            "url": self._queue.webhook,
            "secret": self._webhook.secret,
            "max_connections": self._webhook.max_connections,
            "most_open": self.most_open,
            "attempts": [
                {
                    "update_id": one.update_id,
                    "number": one.number,
                    "at": one.at,
                    "status": one.status,
                    "error": one.error,
                }
                for one in self.attempts
            ],
        }

    async def _run(self) -> None:
        version = self._webhook.version
        async with httpx.AsyncClient(trust_env=False, verify=False, timeout=SECONDS) as client:
            try:
                while self._queue.webhook:
                    if version != self._webhook.version:
                        version = self._webhook.version
                        await self._hang_up()
                    self._begin(client)
                    # Updates that only time makes due are looked for this often.
                    await self._pulse.wait(0.02)
            finally:
                await self._hang_up()

    def _begin(self, client: httpx.AsyncClient) -> None:
        """Begins a post for the oldest update of every lane in which none is under way."""
        clock, seen = asyncio.get_running_loop().time(), set[str]()
        for one in self._queue.waiting:
            lane = _lane(one.payload)
            first = lane not in seen
            seen.add(lane)
            full = len(self._open) >= self._webhook.max_connections
            if not first or full or lane in self._open or self._not_before.get(one, 0) > clock:
                continue
            self._open[lane] = asyncio.create_task(self._deliver(client, one, lane))
            self.most_open = max(self.most_open, len(self._open))

    async def _deliver(self, client: httpx.AsyncClient, one: Waiting, lane: str) -> None:
        chat, words = _about(one.payload)
        entry = self._ledger.opened("webhook", chat, words)
        fault = self._faults.due("webhook", chat, words)
        try:
            status, error, wait = await self._post(client, one, entry, fault)
            entry.status, entry.description, entry.answered = status, error, status is not None
            number = self._failed.get(one, 0) + 1
            self.attempts.append(Attempt(one.id, number, self._now(), status, error))
            if error:
                self._webhook.error, self._webhook.error_at = error, self._now()
                self._failed[one] = number
                seconds = wait or (0 if number == 1 else min(_LONGEST_WAIT, 2 ** (number - 1)))
                self._not_before[one] = asyncio.get_running_loop().time() + seconds * self.second
            else:
                self._queue.taken(one)
                self._failed.pop(one, None)
                self._not_before.pop(one, None)
            if fault is not None and fault.at == "after answer":
                await self._strike(entry, fault)
        finally:
            del self._open[lane]
            self._ledger.closed(entry)
            self._pulse.beat()

    async def _post(
        self, client: httpx.AsyncClient, one: Waiting, entry: Entry, fault: Fault | None
    ) -> tuple[int | None, str, float]:
        """Posts an update; returns the status, what was wrong, and for how many seconds the answer asked to wait."""
        if fault is not None and fault.at == "before effect" and await self._strike(entry, fault):
            return None, "Connection reset by peer", 0
        set_to = urlsplit(self._queue.webhook)
        if not self.to:
            return None, "Failed to resolve host: Name or service not known", 0
        reached = urlsplit(self._reached(one))
        url = urlunsplit((reached.scheme, reached.netloc, set_to.path or "/", set_to.query, ""))
        secret = {"X-Telegram-Bot-Api-Secret-Token": self._webhook.secret} if self._webhook.secret else {}
        headers = {"Host": set_to.netloc, "Accept-Encoding": "gzip, deflate", **secret}
        try:
            answer = await client.post(url, json=one.payload, headers=headers, timeout=self.patience)
        except httpx.ConnectError:
            return None, "Connection refused", 0
        except httpx.TimeoutException:
            return None, _LOST, 0
        except httpx.TransportError:
            return None, "Webhook connection closed", 0
        entry.effect = answer.is_success
        if fault is not None and fault.at == "after effect" and await self._strike(entry, fault):
            return None, _LOST, 0
        if answer.is_success:
            return answer.status_code, "", 0
        wrong = f"Wrong response from the webhook: {answer.status_code} {answer.reason_phrase}"
        asked = answer.headers.get("retry-after", "")
        return answer.status_code, wrong, min(3_600, int(asked)) if asked.isdigit() else 0

    def _reached(self, one: Waiting) -> str:
        """The address that is called for the next attempt."""
        order = list(self.to)
        Random(one.id).shuffle(order)
        return order[self._failed.get(one, 0) % len(order)]

    async def _strike(self, entry: Entry, fault: Fault) -> bool:
        """Lets a fault happen; returns whether the connection is gone with it."""
        entry.fault = fault.do
        if fault.do == "delay":
            await asyncio.sleep(fault.seconds)
            return False
        if fault.do == "kill":
            # Not waited for: it is to hit the bot at work on this very post.
            asyncio.get_running_loop().call_later(fault.seconds, partial(self._kill, entry, fault))
            return False
        return True

    def _kill(self, entry: Entry, fault: Fault) -> None:
        assert fault.pid is not None
        self._ledger.killed(fault.pid, fault.at, entry)
        os.kill(fault.pid, signal.SIGKILL)

    async def _hang_up(self) -> None:
        """End what is under way; it will come again."""
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _lane(update: JSON) -> str:
    """Updates with one name here keep their order; the others may overtake each other."""
    kind = next((name for name in update if name != "update_id"), "")
    body = update.get(kind)
    if not isinstance(body, dict):
        return f"update {update['update_id']}"
    if "chat" in body:
        # News of the bot's own place in a chat don't wait behind what is said there.
        return f"{kind if kind.endswith('chat_member') else 'chat'} {body['chat'].get('id')}"
    if "from" in body:
        return f"{kind} {body['from'].get('id')}"
    return f"update {update['update_id']}"


def _about(update: JSON) -> tuple[int | None, str]:
    """The chat an update comes from, and its words."""
    body = next((value for name, value in update.items() if name != "update_id"), None)
    if not isinstance(body, dict):
        return None, ""
    place = body.get("chat") or (body.get("message") or {}).get("chat") or {}
    return place.get("id"), str(body.get("text") or body.get("caption") or body.get("data") or "")
