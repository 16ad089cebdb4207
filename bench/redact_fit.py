"""Learns from texts which pieces are secrets, and writes `memory/text/secrets/likely.json`.

    python -m bench.redact_fit --made 4 --author FORMATS ORDINARY [--author …] [--chats FILE_OR_FOLDER…] [--write]

An author's texts are two files as `bench.redact` reads them. Each author is left out once, and the figures tell which
share of that author's texts would be caught, or masked in vain, by what the others taught; `--write` learns from all.
`--made` adds so many texts of every line in `redact_made.yaml`, `--chats` lines of conversations without secrets.

Needs scikit-learn, which the product doesn't: `pip install scikit-learn` in an environment of one's own.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from bench.redact import lines_of
from memory.text.secrets import redact as rules
from memory.text.secrets.folding import BARRIER, folded, folded_with_places
from memory.text.secrets.likely import Description, PossibleSecret, candidates, description, pieces

#: The weights of generated texts with secrets, of those without, and of lines of chats; a text by a person has 1.
MADE_COUNTS, MADE_PLAIN_COUNTS, CHAT_COUNTS = 0.3, 0.8, 0.5
TABLE = Path("memory/text/secrets/likely.json")


class JudgedText(NamedTuple):
    """A text whose secrets that rules find are masked; `secrets` are where the others stand."""

    plain: str
    told: list[tuple[PossibleSecret, Description, bool | None]]
    secrets: list[tuple[int, int]]
    holds: bool
    counts: float


def read(text: str, secrets: Sequence[str], counts: float = 1) -> JudgedText:
    masked = rules.by_rules(text)
    plain, _ = folded_with_places(masked)
    places = [match.span() for one in secrets for match in re.finditer(re.escape(folded(one)), plain)]
    some = pieces(plain)
    told = [(one, description(plain, some, one), _is_one(one, places)) for one in candidates(plain, some)]
    return JudgedText(plain, told, places, bool(secrets), counts)


def _is_one(candidate: PossibleSecret, places: list[tuple[int, int]]) -> bool | None:
    """Returns whether a candidate is a secret; None when it is a part of one or holds one."""
    found: bool | None = False
    for start, end in places:
        shared = min(end, candidate.end) - max(start, candidate.start)
        if shared >= 0.6 * max(end - start, candidate.end - candidate.start):
            return True
        if shared > 0:
            found = None
    return found


def learned(texts: list[JudgedText]) -> dict[str, Any]:
    """Returns what tells secrets in these texts, as `likely.json` holds it."""
    from sklearn.ensemble import GradientBoostingClassifier  # Only who learns needs it.

    rows = [(told, one, text.counts) for text in texts for _, told, one in text.told if one is not None]
    names = sorted({name for told, _, _ in rows for name in told})
    matrix = np.array([[told.get(name, 0) for name in names] for told, _, _ in rows], dtype=np.float32)
    model = GradientBoostingClassifier(
        n_estimators=340,
        max_depth=3,
        learning_rate=0.065,
        subsample=0.6,
        max_features=0.15,
        min_samples_leaf=6,
        random_state=1,
    )
    model.fit(matrix, [one for _, one, _ in rows], sample_weight=[counts for *_, counts in rows])
    used = sorted({int(one) for tree in model.estimators_[:, 0] for one in tree.tree_.feature if one >= 0})
    place = {feature: nth for nth, feature in enumerate(used)}

    def node(tree: Any, nth: int) -> Any:
        if tree.feature[nth] < 0:
            return round(float(tree.value[nth][0][0]) * model.learning_rate, 3)
        ends = (node(tree, tree.children_left[nth]), node(tree, tree.children_right[nth]))
        return [place[int(tree.feature[nth])], round(float(tree.threshold[nth]), 3), *ends]

    share = float(model.init_.class_prior_[1])
    return {
        "names": [names[one] for one in used],
        "base": round(float(np.log(share / (1 - share))), 3),
        "trees": [node(tree.tree_, 0) for tree in model.estimators_[:, 0]],
    }


def judged(texts: list[JudgedText], table: dict[str, Any]) -> list[tuple[float, float, float]]:
    """For each threshold, it, the share of texts with secrets that were caught, and of others that were masked."""
    from memory.text.secrets.likely import tables, worths

    trees = tables(table)
    each = [worths([told for _, told, _ in text.told], trees) for text in texts]
    found: list[tuple[float, float, float]] = []
    for least in np.arange(-2, 6, 0.1):
        counts = {True: [0, 0], False: [0, 0]}
        for text, some in zip(texts, each, strict=True):
            hits = [
                one[:2]
                for (one, _, _), much in zip(text.told, some, strict=True)
                if much > least
                and (BARRIER not in text.plain or any(map(str.isdigit, text.plain[one.start : one.end])))
            ]
            clear = all(any(a < end and start < b for a, b in hits) for start, end in text.secrets)
            counts[text.holds][0] += clear if text.holds else bool(hits) or BARRIER in text.plain
            counts[text.holds][1] += 1
        caught, vain = (got / max(1, of) for got, of in (counts[True], counts[False]))
        found.append((float(least), caught, vain))
    return found


def made(times: int) -> Iterator[JudgedText]:
    """Texts that are made by chance, the same every time."""
    chance = random.Random(5)
    given = yaml.safe_load(Path(__file__).with_name("redact_made.yaml").read_text("utf-8"))
    for line in (line for line in (*given["secret"], *given["ordinary"]) for _ in range(times)):
        secrets: list[str] = []
        filled = re.sub(r"\{([a-z]+)(\d*)\}", lambda match: _filled(match, chance, given, secrets), line)  # noqa: B023
        begins = (
            chance.choice(["hi, ", "ok so ", "fyi ", "pls save: ", "btw ", "Reminder: "])
            if chance.random() < 0.15
            else ""
        )
        ends = (
            chance.choice([" thx", ", dont tell anyone", " please", ". Thanks!", " ok?"])
            if chance.random() < 0.15
            else ""
        )
        yield read(begins + filled + ends, secrets, MADE_COUNTS if secrets else MADE_PLAIN_COUNTS)


def _filled(match: re.Match[str], chance: random.Random, given: dict[str, Any], secrets: list[str]) -> str:
    def some(letters: str, count: int) -> str:
        return "".join(chance.choices(letters, k=count))

    def word() -> str:
        return chance.choice(str(given["words"]).split())

    def number() -> str:
        return some(string.digits, chance.choice((4, 4, 4, 5, 6, 6)))

    def password() -> str:
        one, other, digits, sign = word(), word(), str(chance.randrange(1, 9999)), chance.choice("!#_-.&@*+?$%")
        odd = "".join({"o": "0", "e": "3", "a": "4", "i": "1", "s": "5"}.get(char, char) for char in one + other)
        ways = (
            *(one.title() + digits, one + digits, one.title() + sign + other.title(), one + sign + other + digits, odd),
            *(one.title() + other.title() + sign, one + other, one.title() + digits + sign, f"{one}-{other}-{word()}"),
            *(odd.title() + sign + digits, one + sign + digits, some(string.ascii_letters + string.digits, 10)),
        )
        return chance.choice(ways)

    def code() -> str:
        digits = number()
        return chance.choice((*[digits] * 4, digits + "#", "*" + digits, "B" + digits, digits + "A", "-".join(digits)))

    groups = string.ascii_uppercase + string.digits
    ways: dict[str, Callable[[], str]] = {
        "pw": password,
        "plain": lambda: chance.choice((word(), word() + word(), word() + word() + word())),
        "phrase": lambda: " ".join(word() for _ in range(chance.randrange(2, 5))),
        "pin": number,
        "code": code,
        "grp": lambda: chance.choice((some(string.digits, 6), f"{some(string.digits, 3)} {some(string.digits, 3)}")),
        "combo": lambda: "-".join(f"{chance.randrange(60):02}" for _ in range(3)),
        "spell": lambda: " ".join(chance.choices(given["digits"].split(), k=4)),
        "key": lambda: chance.choice((some("0123456789abcdef", 32), some(string.ascii_letters + string.digits, 32))),
        "groups": lambda: "-".join(some(groups, 5) for _ in range(chance.choice((3, 4, 5)))),
        "b": lambda: some("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", chance.choice((16, 24, 32))),
        "name": lambda: chance.choice(given["names"].split(", ")),
    }
    if match[1] in ways:
        secrets.append(ways[match[1]]())
        return secrets[-1]
    hours, minutes = chance.randrange(24), chance.choice(("00", "15", "30", "45"))
    others: dict[str, Callable[[], str]] = {
        "service": lambda: chance.choice(given["services"].split(", ")),
        "place": lambda: chance.choice(given["places"].split(", ")),
        "user": lambda: chance.choice(given["users"].split(", ")),
        "word": lambda: chance.choice((word(), word().title(), word().upper())),
        "time": lambda: chance.choice((f"{hours:02}{minutes}", f"{hours}:{minutes}", f"{hours % 12 + 1}pm")),
        "letters": lambda: some(groups, 6),
        "serial": lambda: some(string.ascii_uppercase, 2) + some(string.digits, 5) + some("ABCDE", 1),
        "uuid": lambda: "-".join(some("0123456789abcdef", size) for size in (8, 4, 4, 4, 12)),
        "hex": lambda: some("0123456789abcdef", int(match[2])),
        "n": lambda: some(string.digits, int(match[2])),
    }
    return others[match[1]]() if match[1] in others else match[0]


def main() -> int:
    """Prints how each author's texts fare with what the others taught."""
    parser = argparse.ArgumentParser(prog="python -m bench.redact_fit", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--author", nargs=2, type=Path, action="append", required=True, metavar=("FORMATS", "ORDINARY"))
    parser.add_argument("--made", type=int, default=4, help="texts of every line that is made")
    parser.add_argument("--chats", nargs="*", type=Path, default=[], help="conversations without secrets")
    parser.add_argument("--lines", type=int, default=1_500, help="how many lines of them, drawn by chance")
    parser.add_argument("--least", type=float, default=1.0, help="how much must speak for a secret")
    parser.add_argument("--write", action="store_true", help="learn from all and write the table")
    given = parser.parse_args()
    authors = [
        [
            read(row["text"], row.get("secrets", ()))
            for path in pair
            for row in map(json.loads, path.open(encoding="utf-8"))
        ]
        for pair in given.author
    ]
    every = sorted({line for path in given.chats for line in lines_of(path) if line.strip()})
    shared = [*made(given.made)]
    shared += [read(line, (), CHAT_COUNTS) for line in random.Random(7).sample(every, min(given.lines, len(every)))]
    for nth, author in enumerate(authors):
        others = [text for other in authors if other is not author for text in other]
        if others or shared:
            print(f"author {nth + 1}, by what the others taught: least, caught, masked in vain")
            for least, caught, vain in judged(author, learned(others + shared))[10:60:4]:
                print(f"  {least:5.1f} {caught:7.1%} {vain:6.1%}")
    if given.write:
        table = {"least": given.least, **learned([text for author in authors for text in author] + shared)}
        TABLE.write_text(json.dumps(table, separators=(",", ":")) + "\n", "utf-8")
        print(f"{TABLE}: {TABLE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
