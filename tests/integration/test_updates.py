"""A new value replaces the old one, and a fact that stays true beside it is left alone: 200 updates and 40 pairs.

The pairs are made from the templates of `tests/data/updates.yaml`. Half of the updates are single-valued keys said in
plain words and read by patterns; for the other half a scripted model tells the fact and names the row it replaces, if
and only if that row stands in the prompt it got.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from memory.context import Context
from memory.learn.learner import Learner, Triggers
from memory.learn.model import BackgroundModel, ModelAnswer, ModelRequest
from memory.service import Service
from memory.store import memories
from memory.store.database import Reader
from memory.store.memories import Memory
from tests.kit.fakes import Clock, counting_ids
from tests.kit.minds import answered, is_second
from tests.kit.stores import remembering
from tests.kit.talk import learn, private, say

TEMPLATES: dict[str, dict[str, list[dict[str, Any]]]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "updates.yaml").read_text("utf-8")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two messages and what becomes of them. `old` and `new` are what a model makes of them."""

    person: str
    read_by: str
    key: str
    category: str
    first: str
    then: str
    old: str
    new: str
    ask: str


def pairs(section: str) -> Iterator[Pair]:
    """All pairs of a section, by counting only. Those a model reads are all of one person per language."""
    for language, templates in TEMPLATES[section].items():
        for t, template in enumerate(templates):
            read_by = template.get("read_by", "patterns" if section == "keyed" else "model")
            for n in range(template["pairs"]):
                words = {"a": template["words"][n], "b": template["words"][n + 1]}
                filled = {
                    name: template.get(name, "").format(**words) for name in ("first", "then", "old", "new", "ask")
                }
                yield Pair(
                    person=language if read_by == "model" else f"{section}-{language}-{t}-{n}",
                    read_by=read_by,
                    key=template.get("key", "") + (f"-{n}" if read_by == "model" else ""),
                    category=template.get("category", ""),
                    **filled,
                )


class Reading:
    """A model that knows what each message says, and finds the row to replace in the prompt or not at all."""

    def __init__(self, pairs: list[Pair], *, replacing: bool) -> None:
        self._said = {pair.first: (pair, pair.old) for pair in pairs} | {pair.then: (pair, pair.new) for pair in pairs}
        self._replacing = replacing
        self.not_offered: list[str] = []

    async def __call__(self, request: ModelRequest) -> ModelAnswer:
        if is_second(request):
            return answered({})
        known: dict[str, str] = {}
        facts = []
        for line in request.material.splitlines():
            row = json.loads(line) if line.startswith("{") else {}
            if "id" in row:
                known[row["value"]] = row["id"]
            elif "n" in row and row["text"] in self._said:
                pair, value = self._said[row["text"]]
                replaces = known.get(pair.old) if self._replacing and value == pair.new else None
                if self._replacing and value == pair.new and replaces is None:
                    self.not_offered.append(pair.old)
                facts.append(
                    {"category": pair.category, "key": pair.key, "value": value, "messages": [row["n"]],
                     "replaces": replaces}
                )  # fmt: skip
        return answered({"facts": facts})


async def rows(memory: Service, context: Context) -> list[Memory]:
    def act(reader: Reader) -> list[Memory]:
        ids = [row["id"] for row in reader.all("select id from memories where kind = 'fact' order by id")]
        return memories.by_ids(reader, context.scope, ids)

    return await memory.database.read(act)


async def told(memory: Service, clock: Clock, told_pairs: list[Pair], model: Reading) -> dict[str, Context]:
    """Says all first halves and, a day later, all second ones, each read on its own; returns the contexts by person."""
    learner = Learner(
        memory.database,
        agents=remembering(memory, model=BackgroundModel(complete=model)),
        triggers=Triggers(),
        now=clock,
        new_id=new_id,
    )
    contexts: dict[str, Context] = {}
    for half in ("first", "then"):
        clock.move(days=1)
        for pair in told_pairs:
            clock.move(minutes=1)
            turn = await say(memory, private(pair.person), getattr(pair, half), clock=clock)
            contexts[pair.person] = turn.context
            if pair.read_by == "patterns":
                await learn(memory, turn)
            else:
                await learner.flush(turn.context.session.id, "test")
    return contexts


def short_ids() -> Any:
    numbers = counting_ids()
    return lambda: f"m_{numbers()}x"


new_id = short_ids()


async def stands_above(memory: Service, context: Context, pair: Pair, old: Memory | None, new: Memory | None) -> bool:
    """Whether the new row has replaced the old one and a search finds it above, where it finds the old one at all."""
    if old is None or new is None or old.superseded_by != new.id or not new.live:
        return False
    # Asked in the words of what was: the old row matches best, and must stand below all the same.
    hits = await memory.browse.search(context, f"{pair.ask} {old.value}", limit=20)
    found = [hit.memory.id for hit in hits if hit.memory is not None]
    return new.id in found and (old.id not in found or found.index(new.id) < found.index(old.id))


async def test_a_single_valued_key_that_is_told_anew_replaces_what_was(memory: Service, clock: Clock) -> None:
    """Said in plain words, read without any model: all of them."""
    keyed = list(pairs("keyed"))
    assert len(keyed) == 100
    contexts = await told(memory, clock, keyed, Reading([], replacing=False))
    missed = []
    for pair in keyed:
        context = contexts[pair.person]
        held = [row for row in await rows(memory, context) if row.key == pair.key]
        old, new = (held[0], held[-1]) if len(held) == 2 else (None, None)
        if not await stands_above(memory, context, pair, old, new):
            missed.append((pair.first, pair.then, [(row.key, row.value, row.live) for row in held]))
    assert missed == []


async def test_a_fact_that_a_model_says_is_over_is_replaced(memory: Service, clock: Clock) -> None:
    """Among a hundred other facts, and only when the row was offered to the model: at least 96 of 100.

    With the hundred keyed ones above, that is 98 % of all.
    """
    free = list(pairs("free"))
    assert len(free) == 100
    model = Reading(free, replacing=True)
    contexts = await told(memory, clock, free, model)
    held = {person: {row.value: row for row in await rows(memory, context)} for person, context in contexts.items()}
    missed = []
    for pair in free:
        mine = held[pair.person]
        old, new = mine.get(pair.old), mine.get(pair.new)
        if not await stands_above(memory, contexts[pair.person], pair, old, new):
            missed.append((pair.old, pair.new, old and old.superseded_by, new and new.id))
    assert model.not_offered == []
    assert len(missed) <= 4, missed


async def test_what_stays_true_beside_something_new_is_never_replaced(memory: Service, clock: Clock) -> None:
    """A second allergy, a second client: none of 40 pairs may lose its first half."""
    both = list(pairs("both"))
    assert len(both) == 40
    contexts = await told(memory, clock, both, Reading(both, replacing=False))
    lost = []
    for pair in both:
        held = await rows(memory, contexts[pair.person])
        live = {row.value for row in held if row.live}
        stands = {pair.old, pair.new} <= live if pair.read_by == "model" else len(live) == 2
        if not stands or any(row.superseded_by is not None for row in held):
            lost.append((pair.first, pair.then, sorted(live)))
    assert lost == []
