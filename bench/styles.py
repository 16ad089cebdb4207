"""Measures which claims of a careless model about how a person wants to be answered are kept.

    python -m bench.styles [FILE] [--show]      FILE: tests/data/style_claims.yaml unless named

Each entry of FILE is a message, perhaps the assistant's words before it, a model's claim, and whether the message asks
for just that from now on. A scripted model gives the claim as its answer, which is read as any model's answer is.
Shown for each part of FILE and each language: the precision and recall of the claims kept as sure, and beside them
those of a reader that believes every claim. No randomness.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from bench.extraction import SCOPE, SPEAKER
from bench.grounding import message
from memory.learn.answer import read_answer
from memory.learn.ask import Stretch
from memory.learn.extract import findings

Claim: TypeAlias = dict[str, Any]
CLAIMS: Final = Path(__file__).parents[1] / "tests" / "data" / "style_claims.yaml"


def read_claims(path: Path) -> list[Claim]:
    """Returns the entries of a file."""
    found: list[Claim] = yaml.safe_load(path.read_text("utf-8"))
    return found


def is_kept(claim: Claim) -> bool:
    """Returns whether a model's claim is kept as sure."""
    before = (message(1, claim["before"], by=None),) if "before" in claim else ()
    stretch = Stretch(
        messages=(message(2, claim["message"], by=SPEAKER),),
        before=before,
        scope=SCOPE,
        scopes={SPEAKER: SCOPE},
        timezones={SPEAKER: "UTC"},
    )
    style = {"key": claim["key"], "value": claim["claim"], "messages": [1]}
    return any(one.is_sure for one in findings(read_answer(json.dumps({"styles": [style]})), stretch))


def figures(claims: Sequence[Claim], kept: Sequence[bool]) -> str:
    """Returns the precision and recall of the claims that are kept, as a line."""
    right = sum(claim["right"] and held for claim, held in zip(claims, kept, strict=True))
    wanted = sum(claim["right"] for claim in claims)
    return f"precision {right / max(1, sum(kept)):.3f} ({right}/{sum(kept)})  recall {right / max(1, wanted):.3f}"


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.styles", description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="?", default=CLAIMS)
    parser.add_argument("--show", action="store_true", help="print each claim that is judged wrongly")
    options = parser.parse_args(None if arguments is None else list(arguments))
    claims = read_claims(options.file)
    kept = {id(claim): is_kept(claim) for claim in claims}
    groups = {f"{claim['part']}": claim["part"] for claim in claims} | {
        f"{claim['part']} {claim['lang']}": (claim["part"], claim["lang"]) for claim in claims
    }
    for name in groups:
        part, _, lang = name.partition(" ")
        some = [one for one in claims if one["part"] == part and lang in ("", one["lang"])]
        weighed, believed = figures(some, [kept[id(one)] for one in some]), figures(some, [True] * len(some))
        print(f"{name:9} weighed: {weighed}   believing: {believed}")
    for claim in claims if options.show else ():
        if kept[id(claim)] != claim["right"]:
            print(f"{'lost' if claim['right'] else 'WRONG':6}{claim['lang']} {claim['claim']} | {claim['message']}")


if __name__ == "__main__":
    main()
