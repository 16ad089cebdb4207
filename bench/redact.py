"""Times the masking of secrets on the worst texts that can be made of its own words, and counts what it masks in chats.

    python -m bench.redact time [--size 1000000] [--worst 20]
    python -m bench.redact chats FILE_OR_FOLDER… [--lines 2000] [--show]
    python -m bench.redact --formats FILE --ordinary FILE [--json]

`time` fills a text of `--size` characters with every opening that the masker knows, with halves of them, with
secrets, with signs and with mixtures, each alone, and prints the slowest. `chats` reads sets of conversations (any
shape that `bench.convert` knows; a JSON array of strings serves as well) and prints how many of their lines change;
with `--show` each such line. Nobody pasted a secret into a published set, so each is a mistake, or a secret that
its author made up. `--formats` reads lines of JSON with `id`, `text` and `secrets`, none of which may be left;
`--ordinary` reads lines with `id` and `text`, none of which may change. They print how many secrets were caught, how
many false alarms there are, and the ids of the texts that failed.
"""

from __future__ import annotations

import argparse
import json
import random
import string
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench import convert
from memory.text.secrets.redact import openings as known
from memory.text.secrets.redact import redact

#: Rounds of which the fastest counts: what else runs on the machine only ever adds. Texts that are fast at once get
#: no second one.
ROUNDS = 5
FAST_SECONDS = 0.02


def units() -> Iterator[tuple[str, str]]:
    """Yields the parts of which a hostile text may be made: each with its kind, as one repetition."""
    openings = known()
    for opening in openings:
        yield "opening", opening
        yield "opening", opening + "=a1 "
        yield "half", opening[: max(1, len(opening) // 2)]
    for word in ("password", "passphrase", "api key", "pin", "密码", "парол", "bearer"):
        for lead in (" ", ": ", "是", " for a b c d ", ': "'):
            for value in ("", "x1", "hunter2 ", "a" * 40 + " "):
                yield "announced", word + lead + value
    for sign in string.printable + "İéж漢。：＝🙂\u200d":
        yield "sign", sign
    for pair in ("==", "://", "//", "::", "..", "--", "\\n", "%3D", "%3A", "-us1", ".a", ":1", "1:", "=a", "@a", "/@"):
        yield "sign", pair
    for digits in ("1234567", "4111", "41111111111111", "4111111111111111", "4111111111111112", "378282246310005"):
        for gap in ("", " ", "-", "\n", "x"):
            yield "digits", digits + gap
    for part in (
        "://a:b@",
        "://a:",
        "://a:b@ ",
        ".aaaaaa",
        ".aaaaaa." + "a" * 27 + " ",
        "1:" + "a" * 35 + " ",
        "a" * 86 + "==\n",
    ):
        yield "shape", part
    for part in (
        "a" * 85 + "== ",
        "eyJaaaaaaaa.",
        "eyJaaaaaaaa.aaaaaaaa ",
        "-----BEGIN ",
        "-----BEGIN PRIVATE" + " KEY-----",
    ):
        yield "shape", part
    for part in (
        "AC" + "a" * 32 + " ",
        "gh" + "p_" + "a" * 36 + " ",
        "AK" + "IA" + "A" * 16 + "\n",
        "sk" + "-" + "a1" * 12 + "\n",
    ):
        yield "secret", part
    for part in ("[secret: password]", "[secret: ", "[secret: api key] ", "password: [secret: password] "):
        yield "mark", part
    chance = random.Random(7)
    for _ in range(40):
        yield "mixture", "".join(chance.choice(openings) + chance.choice(" :=.-_/@\n1") for _ in range(200))
    for _ in range(10):
        yield "noise", "".join(chance.choices(string.printable, k=50_000))
        yield "noise", "".join(chance.choices("sk-_.:=1a@/ ", k=50_000))


def main() -> int:
    """Runs the command line; returns 1 when nothing could be read."""
    parser = argparse.ArgumentParser(prog="python -m bench.redact", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--formats", type=Path, help="texts that hold secrets")
    parser.add_argument("--ordinary", type=Path, help="texts that hold none")
    parser.add_argument("--json", action="store_true", help="print the counts only, as JSON")
    commands = parser.add_subparsers(dest="command")
    timed = commands.add_parser("time", help="the slowest texts")
    timed.add_argument("--size", type=int, default=1_000_000, help="characters of each text")
    timed.add_argument("--worst", type=int, default=20, help="how many are printed")
    chats = commands.add_parser("chats", help="what changes in conversations that hold no secrets")
    chats.add_argument("paths", nargs="+", type=Path)
    chats.add_argument("--lines", type=int, default=2_000, help="how many different lines, drawn by chance")
    chats.add_argument("--show", action="store_true", help="print every line that changes")
    given = parser.parse_args()
    if given.command == "time":
        return _time(given.size, given.worst)
    if given.command == "chats":
        return _chats(given.paths, given.lines, show=given.show)
    if not given.formats and not given.ordinary:
        parser.error("give a command, --formats or --ordinary")
    return _judged(given.formats, given.ordinary, only_counts=given.json)


def _judged(formats: Path | None, ordinary: Path | None, *, only_counts: bool) -> int:
    held, plain = (
        [json.loads(line) for line in path.open(encoding="utf-8")] if path else [] for path in (formats, ordinary)
    )
    passed = [row["id"] for row in held if any(secret in redact(row["text"]) for secret in row["secrets"])]
    alarmed = [row["id"] for row in plain if redact(row["text"]) != row["text"]]
    if only_counts:
        counts = {
            "caught": len(held) - len(passed),
            "formats": len(held),
            "alarms": len(alarmed),
            "ordinary": len(plain),
        }
        print(json.dumps(counts))
        return 0
    print(f"{len(held) - len(passed)} of {len(held)} caught; passed: {' '.join(passed)}")
    print(f"{len(alarmed)} of {len(plain)} false alarms: {' '.join(alarmed)}")
    return 0


def _time(size: int, worst: int) -> int:
    for _, unit in units():
        redact(unit)  # Patterns and the library are there before anything is timed.
    rows: list[tuple[float, float, str, str]] = []
    for kind, unit in units():
        text = (unit * (size // len(unit) + 1))[:size]
        seconds, left = _seconds(text)
        for _ in range(ROUNDS - 1):
            if seconds > FAST_SECONDS:
                seconds, left = min((seconds, left), _seconds(text))
        rows.append((seconds * 1e3, left, kind, unit))
    rows.sort(reverse=True)
    print(f"{len(rows)} texts of {size:,} characters, fastest of up to {ROUNDS} rounds, ms")
    by_kind: dict[str, list[float]] = {}
    for milliseconds, _, kind, _ in rows:
        by_kind.setdefault(kind, []).append(milliseconds)
    for kind, some in by_kind.items():
        print(f"  {kind:12} n {len(some):4}  median {sorted(some)[len(some) // 2]:6.1f}  worst {max(some):6.1f}")
    print("the slowest:")
    for milliseconds, left, kind, unit in rows[:worst]:
        print(f"  {milliseconds:6.1f}  {left:8.0%} of it left  {kind:10} {unit[:60]!r}")
    return 0


def _seconds(text: str) -> tuple[float, float]:
    """How long the masking took, and how much of the text is left by length."""
    start = time.process_time()
    masked = redact(text)
    return time.process_time() - start, len(masked) / len(text)


def _chats(paths: list[Path], lines: int, *, show: bool) -> int:
    every = sorted({line for path in paths for line in lines_of(path) if line.strip()})
    if not every:
        print("no lines there", file=sys.stderr)
        return 1
    some = random.Random(7).sample(every, min(lines, len(every)))
    changed = [(line, masked) for line in some if (masked := redact(line)) != line]
    print(f"{len(changed)} of {len(some):,} lines masked ({len(changed) / len(some):.2%}); {len(every):,} were there")
    for line, masked in changed if show else ():
        print(f"- {line}\n+ {masked}")
    return 0


def lines_of(path: Path) -> Iterator[str]:
    """Yields the lines that were said in a set of conversations."""
    try:
        for row in convert.load(path).rows:
            yield from str(row.get("text", "")).split("\n")
    except convert.UnknownShape:
        found = json.loads(path.read_text("utf-8-sig"))
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise
        for one in found:
            yield from one.split("\n")


if __name__ == "__main__":
    sys.exit(main())
