"""How long a person wants answers, by their thumbs on answers: a style like any other, with the answers as sources.

Invariants: only what the judged answers have is learned, their length; nothing from fewer than `_LEAST` of them, and
nothing if one thumb speaks against it. It goes with the thumbs that it rests on, and with the answers like what was
learned from any message. What a person said about the length of answers comes before it. Once forgotten, it takes
`_LEAST` new thumbs on long answers to learn it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from memory.learn import keep
from memory.scope import Scope
from memory.store import judgements, memories
from memory.store.database import Transaction
from memory.store.memories import Draft

KEY: Final = "answer-length"
#: The tokens from which on an answer is long, and up to which it is short.
_LONG, _SHORT = 150, 80
#: The fewest answers that agree, and the most of the last ones that are looked at.
_LEAST, _MOST = 3, 20


def learn(
    tx: Transaction, scope: Scope, session_id: int, *, now: int, local_date: str, new_id: Callable[[], str]
) -> bool:
    """Brings the style up to date after a judgement in a private chat. Returns whether it has changed."""
    assert scope.speaker_id is not None
    judged = judgements.of_person(tx, session_id, scope.speaker_id, most=_MOST)
    long = {row["id"]: row["good"] for row in judged if row["tokens"] >= _LONG}
    short = {row["id"]: row["good"] for row in judged if row["tokens"] <= _SHORT}
    wish, shown = "", list[int]()
    if len(long) >= _LEAST and not any(long.values()) and all(short.values()):
        wish, shown = "short answers", [*long, *short]
    elif len(long) >= _LEAST and all(long.values()) and short and not any(short.values()):
        wish, shown = "full answers rather than short ones", [*long, *short]
    styles = memories.current_of_owner(tx, scope, scope.writes_to, "style")
    held = [one for one in styles if one.key == KEY and one.origin == "derived"]
    said = any(one.key == KEY for one in styles if one not in held)
    if [one.value for one in held] == [wish] or not (held or (wish and not said)):
        return False
    memories.retract(tx, [one.id for one in held])
    keep.settle(tx, scope, held, now=now, new_id=new_id)
    if wish and not said:
        learned_at = sorted(row["judged_at"] for row in judged if row["id"] in long)[-_LEAST]
        draft = Draft(
            kind="style", owner_id=scope.writes_to, author_id=scope.speaker_id, subject_id=scope.speaker_id,
            agent_id=scope.agent_id, category="instruction", key=KEY, value=wish, importance=5, confidence=0.7,
            origin="derived", learned_at=learned_at, local_date=local_date,
        )  # fmt: skip
        keep.keep(tx, scope, draft, source_ids=sorted(shown), now=now, new_id=new_id)
    return True
