"""Measures what a person gets, and how soon, when the model's server fails: each fault through the whole pipeline.

Run `python -m bench.faults [--json] [--seconds N] [FAULT ...]`. Each fault has a process-wide configuration, a store
and a server on loopback of its own. A person says one thing while the server is faulty and another when it is well
again. It prints the seconds of the faulty turn beside the deadline, and what was said. Exit code 1 when a turn
outlasted its deadline by more than a second, when nothing was said, or when the next message was not answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import ssl
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import trustme

from channels.base import Capabilities, Channel, Inbound, Outbound, Place
from gateway import app
from gateway.config import loading
from gateway.config.settings import WorkPace
from gateway.ops import telemetry
from gateway.reception.router import Router
from tests.kit import faultserver
from tests.kit.faultserver import FaultServer

#: Seconds by which a turn may outlast its deadline: what delivery and a busy machine take.
GRACE = 1.0
#: The person's message while the server is faulty, and the one when it is well again.
FIRST = "What is the capital of Portugal?"
SECOND = "Are you there again?"
PERSON = "ada"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A way to fail. `codes` are the errors a person may be told of it, "deadline" apart.

    `address` is another server's than the right one ("" is the right one), and only the operator can correct it.
    `shown` is what of the answer the person has seen before the fault.
    """

    mode: str = "well"
    codes: tuple[str, ...]
    address: str = ""
    refuses: bool = False
    tls: bool = False
    shown: str = ""


_UNAVAILABLE = ("model_unavailable",)
_BAD = ("bad_completion",)
_BUSY = ("model_rate_limited",)

FAULTS: Mapping[str, Fault] = {
    "refused": Fault(refuses=True, codes=_UNAVAILABLE),
    "dns": Fault(address="http://models.invalid/v1", codes=_UNAVAILABLE),
    "tls_untrusted": Fault(tls=True, codes=_UNAVAILABLE),
    "tls_hang": Fault(mode="mute", address="https://localhost:{port}/v1", codes=_UNAVAILABLE),
    "hang": Fault(mode="hang", codes=_UNAVAILABLE),
    "hang_midstream": Fault(mode="hang_midstream", codes=_UNAVAILABLE, shown=faultserver.BEGUN),
    "drip": Fault(mode="drip", codes=_UNAVAILABLE),
    "drip_head": Fault(mode="drip_head", codes=_UNAVAILABLE),
    "drip_error": Fault(mode="drip_error", codes=_UNAVAILABLE),
    "pings": Fault(mode="pings", codes=_UNAVAILABLE),
    "reset": Fault(mode="reset", codes=_UNAVAILABLE),
    "reset_midstream": Fault(mode="reset_midstream", codes=_BAD, shown=faultserver.BEGUN),
    "close": Fault(mode="close", codes=_UNAVAILABLE),
    "cut": Fault(mode="cut", codes=_BAD),
    "cut_midstream": Fault(mode="cut_midstream", codes=_BAD, shown=faultserver.BEGUN),
    "cut_line": Fault(mode="cut_line", codes=_BAD),
    "busy": Fault(mode="busy", codes=_BUSY),
    "busy_soon": Fault(mode="busy_soon", codes=_BUSY),
    "busy_long": Fault(mode="busy_long", codes=_BUSY),
    "broken": Fault(mode="broken", codes=_UNAVAILABLE),
    "broken_gateway": Fault(mode="broken_gateway", codes=_UNAVAILABLE),
    "garbage": Fault(mode="garbage", codes=_BAD),
    "garbage_line": Fault(mode="garbage_line", codes=_BAD),
    "failed": Fault(mode="failed", codes=_UNAVAILABLE),
    "failed_midstream": Fault(mode="failed_midstream", codes=_UNAVAILABLE, shown=faultserver.BEGUN),
    "no_http": Fault(mode="no_http", codes=_UNAVAILABLE),
    "empty": Fault(mode="empty", codes=_BAD),
    "empty_answer": Fault(mode="empty_answer", codes=_BAD),
    "huge": Fault(mode="huge", codes=_BAD),
    "huge_stream": Fault(mode="huge_stream", codes=_BAD, shown="x" * 1000),
    "huge_line": Fault(mode="huge_line", codes=_BAD),
    "huge_error": Fault(mode="huge_error", codes=_UNAVAILABLE),
}


class Listener(Channel):
    """A channel that keeps what is shown in each chat: `streamed` as it grows, `sent` when it is final."""

    id = "console"
    platform = "console"
    capabilities = Capabilities(stream="append", resend="mark", burst_seconds=0)

    def __init__(self) -> None:
        self.streamed: defaultdict[str, str] = defaultdict(str)
        self.sent: defaultdict[str, list[str]] = defaultdict(list)

    async def append(self, place: Place, turn: int, text: str) -> None:
        self.streamed[place.chat] += text

    async def send(self, outbound: Outbound) -> str:
        self.sent[outbound.place.chat].append(outbound.text)
        return str(outbound.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suffered:
    """The outcome of a fault. `seconds` and `asked` (requests to the model) are those of the faulty turn.

    `streamed` is what that turn showed before its end, `again` the answer to the next message, and `kept` whether the
    model then saw the first message.
    """

    fault: str
    seconds: float
    deadline: float
    asked: int
    streamed: str
    told: tuple[str, ...]
    again: tuple[str, ...]
    kept: bool
    read_mb: float


async def suffer(folder: Path, name: str, *, deadline: float) -> Suffered:
    """Let one person meet the fault called `name`, with a turn's deadline of so many seconds."""
    fault = FAULTS[name]
    listener = Listener()
    async with faultserver.serving(tls=_untrusted(folder) if fault.tls else None) as server:
        server.mode = fault.mode
        if fault.refuses:
            await server.stop()
        address = fault.address.format(port=server.port) or server.base_url
        async with app.running(configured(folder, address, deadline), {listener.id: listener}) as router:
            start = time.perf_counter()
            await say(router, PERSON, FIRST, 1)
            seconds = time.perf_counter() - start
            told = tuple(listener.sent[PERSON])
            streamed, asked, read = listener.streamed[PERSON], len(server.requests), server.written
            if not (fault.address or fault.tls):
                await _heal(server)
                await say(router, PERSON, SECOND, 2)
        if fault.address or fault.tls:
            # No server can cure this: the operator corrects the address, and starts again.
            await server.stop()
            server.tls = None
            await _heal(server)
            async with app.running(configured(folder, server.base_url, deadline), {listener.id: listener}) as router:
                await say(router, PERSON, SECOND, 2)
        seen = json.dumps(server.requests[-1]) if server.requests else ""
    return Suffered(
        fault=name,
        seconds=round(seconds, 3),
        deadline=deadline,
        asked=asked,
        streamed=streamed,
        told=told,
        again=tuple(listener.sent[PERSON][len(told) :]),
        kept=FIRST in seen and SECOND in seen,
        read_mb=round(read / 1e6, 1),
    )


async def _heal(server: FaultServer) -> None:
    await server.stop()
    server.mode = "well"
    await server.start()


async def say(router: Router, person: str, text: str, number: int) -> None:
    """Let a person say one thing in private; returns when all is answered. `number` is never used again."""
    inbound = Inbound(
        channel="console",
        platform="console",
        bot_id="local",
        update_key=str(number),
        chat=person,
        chat_kind="private",
        author_id=person,
        author_name=person,
        message_id=str(number),
        text=text,
        sent_at=app.now(),
    )
    await router.on_inbound(inbound)
    await router.settled(inbound.place)


def configured(folder: Path, base_url: str, deadline: float) -> loading.Config:
    """A configuration in `folder` with one model at `base_url` and turns of at most `deadline` seconds."""
    agents = folder / "agents"
    agents.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(
        f"limits: {{turn_seconds: {deadline:g}, burst_seconds: 0, concurrent_turns: 100}}\n"
        "embedding: {provider: none}\n",
        "utf-8",
    )
    (agents / "assistant.yaml").write_text(
        f"name: assistant\nmodels: [{{provider: openai, model: gpt-4o, base_url: '{base_url}', key: sk-local}}]\n",
        "utf-8",
    )
    return loading.load(folder / "config.yaml", {}, folder, pace=WorkPace(quiet_seconds=86_400, exit_seconds=0))


def _untrusted(folder: Path) -> ssl.SSLContext:
    """A server's side of TLS with a certificate nobody trusts."""
    path = folder / "both.pem"
    trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    return context


async def _measure(names: Sequence[str], deadline: float) -> list[Suffered]:
    results: list[Suffered] = []
    numbers = count(1)
    with tempfile.TemporaryDirectory() as root:
        for name in names:
            folder = Path(root) / str(next(numbers))
            folder.mkdir()
            results.append(await suffer(folder, name, deadline=deadline))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"of {', '.join(FAULTS)}; all when none is named")
    parser.add_argument("--seconds", type=float, default=2.0, help="the deadline of a turn")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    unknown = [name for name in wanted.faults if name not in FAULTS]
    if unknown:
        parser.error(f"there is no fault called {', '.join(unknown)}")
    os.environ["NO_PROXY"] = "*"
    telemetry.configure(level="error", format="console", file=None, redact=str)
    results = asyncio.run(_measure(wanted.faults or list(FAULTS), wanted.seconds))
    wrong = [
        result.fault
        for result in results
        if result.seconds > result.deadline + GRACE
        or len(result.told) != 1
        or result.again != (faultserver.WELL,)
        or not result.kept
    ]
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    if wanted.json:
        shortened = [{**asdict(result), "streamed": result.streamed[:40]} for result in results]
        print(json.dumps({"faults": shortened, "wrong": wrong, "resident_mb": peak}, ensure_ascii=False))
    else:
        for result in results:
            print(
                f"{result.fault:>16} {result.seconds:6.2f} s of {result.deadline:g}, asked {result.asked} x:", end=" "
            )
            print(" | ".join(text[:70] for text in result.told) or "nothing was said")
        print(f"resident at most {peak:g} MB; wrong: {', '.join(wrong) or 'none'}")
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
