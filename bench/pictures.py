"""The pictures in the documentation: `python -m bench.pictures` runs Remora at a terminal and draws what it shows.

Invariants: the program is the real one at a real pseudo-terminal, which pyte emulates cell by cell; nothing on the
screen is edited. What it remembers was replayed from `TOLD`, at the times given there. Runs on Linux and macOS.
"""

from __future__ import annotations

import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyte
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT: Final = Path(__file__).parents[1]
PICTURES: Final = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 100, 60

TOLD: Final = (
    ("2026-03-02T18:05:00Z", "Hi! My name is Ada and I live in Lisbon."),
    ("2026-03-02T18:06:00Z", "I'm allergic to peanuts."),
    ("2026-04-19T09:12:00Z", "My sister Mira has moved to Lyon, she is a vet there."),
    ("2026-06-07T20:40:00Z", "我喜欢爬山，周末常去辛特拉。"),
    ("2026-07-30T12:00:00Z", "The spare key is under the blue flower pot behind the shed."),
)
#: The name of each picture, its title, and what is typed in it.
SESSIONS: Final = (
    (
        "chat",
        "remora chat",
        (
            "What am I allergic to?",
            "我喜欢什么？",
            "We moved! I live in Porto now.",
            "Where do I live?",
        ),
    ),
    ("why", "remora chat", ("Where do I live?", "/why")),
)
#: Seconds without output after which an answer counts as whole, and after which a picture is given up.
_QUIET, _PATIENCE = 1.5, 60.0

#: A dark theme: background, text, then the eight colours of a terminal and their bright forms.
_THEME: Final = TerminalTheme(
    (22, 27, 34),
    (214, 221, 230),
    [
        *((72, 79, 88), (255, 123, 114), (86, 211, 140), (227, 179, 65)),
        *((108, 182, 255), (210, 168, 255), (86, 212, 221), (214, 221, 230)),
    ],
    [
        *((110, 118, 129), (255, 161, 152), (126, 231, 165), (240, 204, 108)),
        *((150, 203, 255), (226, 197, 255), (136, 230, 236), (255, 255, 255)),
    ],
)
#: Names that pyte has for colours and rich has not.
_COLOURS: Final = {"brown": "yellow", "brightbrown": "bright_yellow"}
_FONT: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Noto Sans Mono CJK SC',monospace"
_SVG: Final = """<svg viewBox="0 0 {width} {height}" width="{width}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: FONT; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-family: system-ui,sans-serif; font-size: 15px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
""".replace("FONT", _FONT)


class _AnsweringScreen(pyte.Screen):
    """A screen that tells the program where the cursor is when the program asks for it."""

    def __init__(self, leader: int) -> None:
        super().__init__(COLUMNS, ROWS)
        self._leader = leader

    def write_process_input(self, data: str) -> None:
        """Sends the screen's answer to the program."""
        os.write(self._leader, data.encode())


@dataclass(slots=True)
class _Terminal:
    """A program at a pseudo-terminal, and the screen as a person would see it."""

    process: subprocess.Popen[bytes]
    leader: int
    screen: pyte.Screen
    stream: pyte.ByteStream

    @classmethod
    def running(cls, config: Path) -> _Terminal:
        """Starts `remora chat` with this configuration."""
        leader, follower = pty.openpty()
        screen = _AnsweringScreen(leader)
        environment = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "chat", "--config", str(config)],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env={**environment, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "HOME": str(config.parent)},
            cwd=config.parent,
            start_new_session=True,
        )
        os.close(follower)
        return cls(process, leader, screen, pyte.ByteStream(screen))

    def read(self) -> None:
        """Shows what the program writes, until it has been quiet for a while."""
        until, quiet = time.monotonic() + _PATIENCE, False
        while not quiet or not self._asks():
            if time.monotonic() > until:
                raise SystemExit("the program has not asked for a line:\n" + "\n".join(self.screen.display))
            quiet = not select.select([self.leader], [], [], _QUIET)[0]
            if not quiet:
                self.stream.feed(os.read(self.leader, 65_536))

    def type(self, text: str, end: bytes = b"\r") -> None:
        """Types a line and reads the answer."""
        os.write(self.leader, text.encode() + end)
        self.read()

    def close(self) -> None:
        """Ends the program as somebody does who closes the window."""
        os.killpg(self.process.pid, signal.SIGHUP)
        self.process.wait(_PATIENCE)
        os.close(self.leader)

    def _asks(self) -> bool:
        return self.screen.display[self.screen.cursor.y].startswith("you>")


def picture(screen: pyte.Screen, title: str) -> str:
    """Returns the screen as SVG, down to the row of the cursor."""
    # The console only records, so its output is written nowhere.
    console = Console(record=True, width=COLUMNS + 2, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for y in range(screen.cursor.y + 1):
        line = Text(" ", no_wrap=True)  # a margin
        for x in range(COLUMNS):
            cell = screen.buffer[y][x]
            here = (x, y) == (screen.cursor.x, screen.cursor.y)
            line.append(cell.data, Style.combine((_style(cell), Style(reverse=here))))
        if y < screen.cursor.y:
            line.rstrip()
        else:
            line.truncate(screen.cursor.x + 2)
        console.print(line)
    return console.export_svg(title=title, theme=_THEME, code_format=_SVG, font_aspect_ratio=0.602, unique_id="remora")


def _style(cell: pyte.screens.Char) -> Style:
    return Style(
        color=_colour(cell.fg),
        bgcolor=_colour(cell.bg),
        bold=cell.bold,
        italic=cell.italics,
        underline=cell.underscore,
        reverse=cell.reverse,
    )


def _colour(name: str) -> str | None:
    if name == "default":
        return None
    if len(name) == 6 and set(name) <= set("0123456789abcdef"):
        return f"#{name}"
    return _COLOURS.get(name, name.replace("bright", "bright_"))


def _told(folder: Path) -> Path:
    """Returns a configuration whose store remembers what was told."""
    config = folder / "config.yaml"
    config.write_text("embedding: {provider: none}\n", "utf-8")
    lines = (
        {"id": number, "time": at, "channel": "console", "chat": "you", "author_id": "you", "text": text}
        for number, (at, text) in enumerate(TOLD)
    )
    recording = folder / "told.jsonl"
    recording.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    subprocess.run(
        [sys.executable, "-m", "bench.replay", "--config", config, recording, "--record-only"],
        check=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return config


def main() -> None:
    """Draws all pictures."""
    PICTURES.mkdir(exist_ok=True)
    for name, title, typed in SESSIONS:
        with tempfile.TemporaryDirectory() as folder:
            terminal = _Terminal.running(_told(Path(folder)))
            try:
                terminal.read()
                # The first answer carries an introduction, which no picture needs: Ctrl-L clears the screen.
                terminal.type("hello")
                terminal.type("", end=b"\x0c")
                for line in typed:
                    terminal.type(line)
                (PICTURES / f"{name}.svg").write_text(picture(terminal.screen, title), "utf-8")
            finally:
                terminal.close()


if __name__ == "__main__":
    main()
