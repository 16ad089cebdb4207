"""A program with a terminal chat and a scripted gateway, for tests to talk to through real pipes and terminals.

`python console_host.py REPORT [ONCE]`: what was said and how it ended is written to REPORT as JSON. The script:
`stream` is answered piece by piece, `markdown` with formatted text, `attack` with terminal escapes, `hang` until it is
stopped, `deaf` for ever, `slow` at SIGUSR1, `big` with the length of the message only, and anything else with what was
heard. `edit` lacks a text, which the channel may ask for. Without `slow`, SIGUSR1 makes a late answer appear.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import sys
import termios
from itertools import count
from pathlib import Path

from channels.base import ChannelError, CommandSpec, Form, Inbound, Outbound, Place
from channels.console import ConsoleChannel, Looks, Streams
from tests.kit.hosts import QuietHost

MARKDOWN = "# Tea\n\nIt is **green**; see [here](https://tea.example/a).\n\n" + "word " * 30 + "end"


class ScriptedGateway(QuietHost):
    """Answers each message inside `settled`, as the real one does."""

    commands = (CommandSpec(name="help", help="what I can do"), CommandSpec(name="greet", help="say hello"))

    def __init__(self, channel: ConsoleChannel) -> None:
        super().__init__()
        self.channel = channel
        self.said: list[str] = []
        self.go_on = asyncio.Event()
        self.stopped = asyncio.Event()
        self.late: set[asyncio.Task[str]] = set()

    async def form(self, inbound: Inbound) -> Form | None:
        return Form(title="Edit", label="What it should say", value="tea") if inbound.text == "/edit" else None

    async def stop(self, place: Place) -> bool:
        if "hang" not in self.said:
            return False
        self.stopped.set()
        return True

    async def on_inbound(self, inbound: Inbound) -> None:
        files = [
            f"[{attachment.kind} {attachment.name}: {len(await self.channel.fetch(inbound, attachment, limit=99))}]"
            for attachment in inbound.attachments
        ]
        self.said.append(" ".join(filter(None, [inbound.text, *files])))

    async def settled(self, place: Place) -> None:
        turn, text = len(self.said), self.said[-1]
        if text == "stream":
            for piece in ("one ", "two ", "three"):
                await self.channel.append(place, turn, piece)
            await self.send(place, "one two three four", turn)
        elif text == "attack":
            await self.channel.append(place, turn, "\x1b]0;owned\x07be")
            await self.send(place, "\x1b]0;owned\x07before\x1b[2Jafter\x9b31m", turn)
        elif text == "markdown":
            for piece in MARKDOWN.split(" "):
                await self.channel.append(place, turn, piece + " ")
            await self.send(place, MARKDOWN, turn, markup="markdown")
        elif text == "hang":
            await self.channel.append(place, turn, "thinking")
            await self.stopped.wait()
            await self.send(place, "thinking\n\n(stopped)", turn, markup="markdown")
        elif text == "deaf":
            await self.channel.append(place, turn, "thinking")
            await asyncio.Event().wait()
        elif text == "slow":
            await self.channel.append(place, turn, "thinking")
            await self.go_on.wait()
            await self.send(place, "thinking done", turn)
        elif text.startswith("big"):
            await self.send(place, f"{len(text)} characters", turn)
        else:
            await self.send(place, f"heard {json.dumps(text)}", turn)

    async def send(self, place: Place, text: str, turn: int | None = None, markup: str = "") -> str:
        return await self.channel.send(Outbound(id=1, place=place, text=text, turn=turn, markup=markup))

    async def speak_late(self, place: Place) -> str:
        await self.channel.append(place, 999, "a late")
        return await self.send(place, "a late answer", 999)

    def on_signal(self) -> None:
        if "slow" in self.said:
            self.go_on.set()
        else:
            self.late.add(asyncio.create_task(self.speak_late(Place(channel="console", chat="ada"))))


async def chat(report: Path, once: str | None) -> None:
    ids = count(1)
    channel = ConsoleChannel(
        person="ada",
        once=once,
        now=lambda: 0,
        new_id=lambda: str(next(ids)),
        streams=Streams(stdin=sys.stdin, stdout=sys.stdout, env=os.environ),
        looks=Looks(greeting="welcome", status=lambda: "all is well", agent_name="fish"),
    )
    host = ScriptedGateway(channel)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, host.on_signal)
    sys.stderr.write("ready\n")
    ended = "never"
    try:
        await channel.run(host)
        ended = "returned"
    except asyncio.CancelledError:
        ended = "cancelled"
        raise
    except ChannelError as error:
        ended = str(error)
    finally:
        facts = {"said": host.said, "ended": ended, "prompt_toolkit": "prompt_toolkit" in sys.modules}
        report.write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    if sys.stdin.isatty():  # Ctrl-C comes from the terminal that controls this process
        fcntl.ioctl(sys.stdin, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored when the tests run in a shell's background
    asyncio.run(chat(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
