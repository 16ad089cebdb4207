"""Measures what is kept of the claims of a careless model.

    python -m bench.grounding FILE [--json] [--show]     claims: {"message", "before", "items": [{key, value, verdict}]}
    python -m bench.grounding FILE --verdicts FILE       what a model said of each pair: {"id", "verdict": yes or no}
    python -m bench.grounding FILE --pairs               the pairs that a model may be asked about, without the verdicts
    python -m bench.grounding FILE --fit                 the weights for `memory/learn/grounding.py`, fitted on FILE

Each line of FILE is a message, the assistant's words before it, and what a model claims to have read in it; each claim
has the verdict of a reader: true, uncertain or unsupported. The claims are answered by a scripted model to the question
about the message, and read as any model's answer is. Shown are the shares of unsupported claims kept as sure and as
unsure, of true claims lost and kept as unsure, and of uncertain claims kept as sure; beside them the same for a reader
that believes every claim, and for patterns alone, which answer for a claim when they find as many of its words under
any key. The questions about pairs are answered by a model that is right, by ones that say yes or no to everything, by
twelve that are wrong one time in ten, whatever they said before (the mean), and as `--verdicts` says. `--fit` also
gives the shares on messages that the weights were not fitted on (ten parts, five times).
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agents.budget import count_tokens
from bench.extraction import SCOPE, SPEAKER, TODAY, matches
from memory.keys import vocabulary_key
from memory.learn import entailment
from memory.learn.answer import read_answer
from memory.learn.ask import Stretch
from memory.learn.entailment import Pair
from memory.learn.extract import findings, propose
from memory.learn.grounding import Claim, SaidText, features, is_doubtful
from memory.learn.model import ample
from memory.store.history import Message

#: How many unsupported claims may pass as sure, and how many true ones be refused, on messages not fitted on.
_SURE_UNSUPPORTED, _REFUSED_TRUE = 0.04, 0.03
#: The strength of the pull of all weights towards nothing.
_RIDGE: Final = 6.0
_PARTS, _TIMES = 10, 5

#: The share of a middling model's answers to the second question that are wrong.
_MISTAKES: Final = 0.1
#: The models of whose shares the mean is taken.
_DRAWS: Final = 12

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One claim about one message, with a reader's verdict. `group` is the number of the message."""

    id: str
    group: int
    message: str
    before: str
    key: str
    value: str
    category: str
    verdict: str


#: Answers the second question about a pair, which is a case or one of the two with known answers.
SecondAnswer: TypeAlias = Callable[[Pair, Case | None, entailment.Known], str]


def cases(path: Path) -> list[Case]:
    lines = read_lines(path)
    return [
        Case(
            id=f"{path.stem}-{n}-{nth}", group=n, message=line["message"], before=line["before"], key=item["key"],
            value=item["value"], category=item["category"], verdict=item["verdict"],
        )
        for n, line in enumerate(lines)
        for nth, item in enumerate(line["items"])
    ]  # fmt: skip


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def outcomes(claims: Sequence[Case], answer: SecondAnswer | None = None) -> list[str]:
    """Returns for each claim about one message whether it is kept as sure, as unsure, or refused.

    `answer` is what a model says to the second question about a pair; without it the question is not asked.
    """
    source = claims[0]
    assistant = [message(1, source.before, by=None)] if source.before else []
    stretch = Stretch(
        messages=(message(2, source.message, by=SPEAKER),),
        before=tuple(assistant),
        scope=SCOPE,
        scopes={SPEAKER: SCOPE},
        timezones={SPEAKER: "UTC"},
    )
    items = [{"key": one.key, "category": one.category, "value": one.value, "messages": [1]} for one in claims]
    read = read_answer(json.dumps({"facts": items}))
    kept = findings(read, stretch)
    if answer:
        of_claim = {pair_of(one).claim: one for one in claims}

        def verdicts(pairs: Sequence[Pair], known: entailment.Known) -> dict[Pair, bool]:
            question = entailment.ask(pairs, ample, known)
            shown = question[1] if question else ()
            said = [{"n": n, "said": answer(pair, of_claim.get(pair.claim), known)} for n, pair in enumerate(shown, 1)]
            return entailment.read(json.dumps({"verdicts": said}), shown, known)

        is_sure = {one.pair: one.is_sure for one in kept if one.pair is not None}
        votes = entailment.Votes(is_sure)
        for known in entailment.QUESTIONS:
            votes.add(verdicts(votes.open(), known))
        kept = findings(read, stretch, votes.counted())
    found = {(one.draft.key, one.draft.value): "sure" if one.is_sure else "unsure" for one in kept}
    return [_outcome(one, found) for one in claims]


def pair_of(case: Case) -> Pair:
    """Returns a claim with its words, as a model is asked about it."""
    return entailment.pair_of(Claim(key=vocabulary_key(case.key), value=case.value), _said(case), by="Sam", about="")


def right(pair: Pair, case: Case | None, known: entailment.Known) -> str:
    said = known[pair] if case is None else case.verdict == "true"
    return "yes" if said else "no"


def mistaken(draw: int) -> SecondAnswer:
    """Returns a model that answers as `right` does, but for one answer in ten, whatever it has said before."""
    chance = random.Random(draw)

    def answer(pair: Pair, case: Case | None, known: entailment.Known) -> str:
        said = right(pair, case, known)
        return {"yes": "no", "no": "yes"}[said] if chance.random() < _MISTAKES else said

    return answer


def by_verdicts(path: Path) -> SecondAnswer:
    """Returns a model that answers as a file says."""
    verdicts = {line["id"]: line["verdict"] for line in read_lines(path)}
    return lambda pair, case, known: verdicts.get(case.id, "") if case else right(pair, case, known)


def by_patterns(claim: Case) -> str:
    """Returns "sure" if patterns find what is claimed, else "refused"."""
    drafts = propose(claim.message, scope=SCOPE, said_at=TODAY, timezone="UTC")
    held = any(matches(f"{one.key} {one.value}", claim.value) for one in drafts)
    return "sure" if held else "refused"


def shares(claims: Sequence[Case], outcome: Sequence[str]) -> dict[str, float]:
    total = Counter(one.verdict for one in claims)
    seen = Counter((one.verdict, how) for one, how in zip(claims, outcome, strict=True))

    def share(verdict: str, how: str) -> float:
        return round(seen[verdict, how] / max(1, total[verdict]), 3)

    return {
        "unsupported_kept": share("unsupported", "sure"),
        "unsupported_unsure": share("unsupported", "unsure"),
        "true_lost": share("true", "refused"),
        "true_unsure": share("true", "unsure"),
        "uncertain_kept": share("uncertain", "sure"),
    }


def fit(claims: Sequence[Case]) -> tuple[dict[str, float], float, float, dict[str, float]]:
    """Returns the weights, the likelihoods of sure and refused, and the shares on messages not fitted on."""
    seen = [features(Claim(key=one.key, value=one.value), _said(one)) for one in claims]
    names = [name for name in seen[0] if name != "misquoted"]  # the claims have no quotes
    rows = np.array([[one[name] for name in names] + [1.0] for one in seen])
    true = np.array([one.verdict == "true" for one in claims], float)
    likely = np.zeros(len(claims))
    for time in range(_TIMES):
        parts = np.random.default_rng(time).permutation(claims[-1].group + 1) % _PARTS
        part = parts[[one.group for one in claims]]
        for n in range(_PARTS):
            out = part == n
            likely[out] += _likely(rows[out], _weights(rows[~out], true[~out])) / _TIMES
    unsupported = np.array([one.verdict == "unsupported" for one in claims])
    doubtful = np.array([is_doubtful(one) for one in seen])
    sure = float(np.quantile(np.where(doubtful, 0, likely)[unsupported], 1 - _SURE_UNSUPPORTED))
    refused = float(np.quantile(likely[true == 1], _REFUSED_TRUE))
    outcome = np.where(likely < refused, "refused", np.where((likely >= sure) & ~doubtful, "sure", "unsure"))
    weights = _weights(rows, true)
    named = dict(zip([*names, ""], (round(float(one), 2) for one in weights), strict=True))
    return named, round(sure, 2), round(refused, 2), shares(claims, list(outcome))


def _said(claim: Case) -> SaidText:
    return SaidText(text=claim.message, before=claim.before)


def _weights(rows: Array, true: Array) -> Array:
    scale = np.append(rows[:, :-1].std(axis=0) + 1e-9, 1.0)
    scaled, pull = rows / scale, np.diag([_RIDGE] * (rows.shape[1] - 1) + [1e-3])
    weights = np.zeros(rows.shape[1])
    for _ in range(30):
        likely = _likely(scaled, weights)
        bend = (scaled.T * (likely * (1 - likely))) @ scaled + pull
        weights += np.linalg.solve(bend, scaled.T @ (true - likely) - pull @ weights)
    found: Array = weights / scale
    return found


def _likely(rows: Array, weights: Array) -> Array:
    found: Array = 1 / (1 + np.exp(-rows @ weights))
    return found


def _outcome(claim: Case, found: dict[tuple[str, str], str]) -> str:
    key = vocabulary_key(claim.key)
    held = [how for (other, value), how in found.items() if other == key and value.startswith(claim.value[:12])]
    return held[0] if held else "refused"


def message(n: int, text: str, *, by: int | None) -> Message:
    """Returns a message of the person `by`, or of the assistant."""
    return Message(
        id=n, session_id=1, turn_id=None, role="assistant" if by is None else "user", author_id=by,
        author_name="" if by is None else "Sam", text=text, tokens=count_tokens(text), learn=True, recall=True,
        sitting=1, nth=n, said_at=TODAY, platform_ref=None, tool_calls=None, tool_call_id=None,
    )  # fmt: skip


def measure(path: Path, *, show: bool, verdicts: Path | None = None) -> dict[str, dict[str, float]]:
    """Returns the shares of the reader as it is, of one that believes everything, of patterns alone, and for several
    models that are asked the second question."""
    claims = cases(path)
    seconds: dict[str, SecondAnswer | None] = {
        "grounded": None,
        "asked, all right": right,
        "asked, yes to all": lambda pair, case, known: "yes",
        "asked, no to all": lambda pair, case, known: "no",
    }
    if verdicts is not None:
        seconds["asked, by verdicts"] = by_verdicts(verdicts)
    figures = {}
    for name, answer in seconds.items():
        outcome = [how for group in _groups(claims) for how in outcomes(group, answer)]
        figures[name] = shares(claims, outcome)
    drawn = [[how for group in _groups(claims) for how in outcomes(group, mistaken(n))] for n in range(_DRAWS)]
    some = [shares(claims, each) for each in drawn]
    figures["asked, one in ten wrong"] = {name: round(fmean(each[name] for each in some), 3) for name in some[0]}
    if show:
        for one, how in zip(claims, outcome, strict=True):
            print(f"{one.verdict:12}{how:8} {one.key}: {one.value} | {one.before} > {one.message}")
    return figures | {
        "believing": shares(claims, ["sure"] * len(claims)),
        "patterns": shares(claims, [by_patterns(one) for one in claims]),
    }


def _groups(claims: Sequence[Case]) -> list[list[Case]]:
    return [list(group) for _, group in groupby(claims, key=lambda one: one.group)]


def pairs(path: Path) -> Iterator[str]:
    """Yields what a model may be asked about, one JSON line each: every claim that is not refused."""
    for group in _groups(cases(path)):
        for one, how in zip(group, outcomes(group), strict=True):
            if how != "refused":
                pair = pair_of(one)
                line = {"id": one.id, "question": pair.question, "quote": pair.text, "claim": pair.claim}
                yield json.dumps(line, ensure_ascii=False)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.grounding", description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true", help="print the shares of the reader as it is, as JSON")
    parser.add_argument("--show", action="store_true", help="print each claim with its outcome")
    parser.add_argument("--fit", action="store_true", help="print the weights that FILE gives")
    parser.add_argument(
        "--pairs", action="store_true", help="print what a model may be asked about, one JSON line each"
    )
    parser.add_argument("--verdicts", type=Path, help="what a model has said of each pair: {id, verdict}")
    options = parser.parse_args(arguments)
    if options.pairs:
        print(*pairs(options.file), sep="\n")
        return
    if options.fit:
        weights, sure, refused, unseen = fit(cases(options.file))
        print(f"WEIGHTS = {json.dumps(weights, indent=4)}\nSURE_FROM = {sure}\nREFUSED_BELOW = {refused}")
        print(f"on messages not fitted on: {unseen}")
        return
    figures: dict[str, Any] = measure(options.file, show=options.show, verdicts=options.verdicts)
    if options.json:
        print(json.dumps(figures.pop("grounded") | figures))
        return
    for name, figure in figures.items():
        print(f"{name}: " + ", ".join(f"{what.replace('_', ' ')} {share:.3f}" for what, share in figure.items()))


if __name__ == "__main__":
    main()
