"""A model by script for the simulated year: it reads what it is asked and answers as a middling model would.

Invariants: the same question gets the same answer, whatever was asked before; it knows of the planted facts only what
their messages say, and of what is known only what it is shown; nothing here reads the store.

It finds each planted fact where its message is read, and names the fact that one replaces if it is among those it is
shown. Beside that it takes down small talk, repeats in the nightly compression what is known in other words or with
words missing, and merges well, needlessly, or at the cost of what it was given.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from bench.year_facts import Fact
from memory import keys
from memory.learn import entailment
from memory.learn.model import ModelAnswer, ModelRequest
from memory.store.usage import Spent
from memory.text.words import stop_tokens, tokens

Row: TypeAlias = Mapping[str, Any]

#: How often something happens, as a share of the chances for it.
SMALL_TALK: Final = 0.08
STYLE: Final = 0.02
EVENT: Final = 0.7
REPEAT: Final = 0.5
#: The shares of repetitions in the compression that are said whole in other words, and with words missing; the rest is
#: small talk.
WHOLE: Final = 0.65
CUT: Final = 0.25
#: The shares of merged groups that lose half of what is named, and that are left nearly as they were.
LOSSY: Final = 0.25
NEEDLESS: Final = 0.15
#: The share of wrong answers to the question whether a message says what was claimed of it.
MISTAKES: Final = 0.1
#: Longest merged statement, in characters.
MERGED_CHARS: Final = 400

_STYLES: Final = {
    "en": (
        "wants short answers", "likes a bit of dry humour", "wants lists rather than long paragraphs",
        "prefers metric units", "wants the plain truth without flattery", "likes to be asked back",
    ),
    "zh": ("回答要简短", "喜欢带点幽默", "喜欢分条列出来", "不要客套话", "喜欢多举例子", "语气轻松一点"),
}  # fmt: skip
_OTHER_WORDS: Final = {
    "en": (
        "as was said before: {}",
        "{}, and that is so up to now",
        "it was said once more that: {}",
        "so far as can be told, {}",
    ),
    "zh": ("之前说过的那样：{}", "{}，到现在也没有变", "又一次说到的是：{}", "看起来仍然是：{}"),
}
_UNSAID: Final = {pair.text for pair, said in (entailment.FIRST | entailment.SECOND).items() if not said}
_SMALL: Final = ("conversation", "temp", "happening")


class Mind:
    """Answers each `ModelRequest` of the year. `facts` are what is planted; `seed` decides what is left to chance.

    `repeat` and `lossy` are shares: of nights on which something known is repeated, of merges that lose half.
    """

    def __init__(self, facts: Iterable[Fact], *, seed: int, repeat: float = REPEAT, lossy: float = LOSSY) -> None:
        self._seed = seed
        self._repeat = repeat
        self._lossy = lossy
        self._told: dict[str, tuple[Fact, int]] = {}
        for fact in facts:
            for nth, text in enumerate((fact.text, *(update.text for update in fact.updates))):
                self._told[text] = (fact, nth)
        self._values = [frozenset(tokens(value)) for fact, _ in self._told.values() for value in values(fact)]
        self.asked: dict[str, int] = {}

    async def __call__(self, request: ModelRequest) -> ModelAnswer:
        kind, answer = next((kind, answer) for sign, kind, answer in self._answers if sign in request.instructions)
        self.asked[kind] = self.asked.get(kind, 0) + 1
        text = json.dumps(answer(_rows(request.material)), ensure_ascii=False)
        spent = Spent(
            model="scripted",
            input_tokens=(len(request.instructions) + len(request.material)) // 4,
            output_tokens=len(text) // 4,
            cached_tokens=0,
            estimated=True,
        )
        return ModelAnswer(text=text, spent=spent)

    @property
    def _answers(self) -> Sequence[tuple[str, str, Callable[[Sequence[Row]], Mapping[str, Any]]]]:
        """By what the instructions say of the answer's form."""
        return (
            ('"merged"', "merge", self._merged),
            ('"pairs"', "compare", self._compared),
            ('"verdicts"', "check", self._checked),
            ('"insight"', "reflect", self._insight),
            ('"styles": []', "extract", self._read),
            ('"facts"', "compress", self._compressed),
            ('"name"', "enrich", self._names),
            ("", "manner", self._manner),
        )

    def _read(self, rows: Sequence[Row]) -> Mapping[str, Any]:
        """Facts, styles and the event of a stretch of talk."""
        known = [row for row in rows if "id" in row]
        said = [row for row in rows if "n" in row and not row["by"].startswith("(")]
        facts, styles = [], []
        for row in said:
            text = row["text"]
            if text in self._told:
                facts.append(self._planted(*self._told[text], row["n"], known))
                continue
            if self._chance("small talk", row["at"], text) < SMALL_TALK:
                facts.append(self._small_talk(row))
            if self._chance("style", row["at"], text) < STYLE:
                value = self._one_of(_STYLES[language(text)], "which style", row["at"], text)
                styles.append({"key": "style", "value": value, "messages": [row["n"]]})
        event = None
        # A question tells of nothing that has happened.
        told = [row for row in said if not _sentence(row["text"]).endswith(("?", "？"))][:2]
        if told and self._chance("event", told[0]["at"], told[0]["text"]) < EVENT:
            value = " ".join(_sentence(row["text"]) for row in told)
            event = {"value": value, "importance": 4, "messages": [row["n"] for row in told]}
        return {"facts": facts, "styles": styles, "event": event, "entities": []}

    def _planted(self, fact: Fact, nth: int, n: int, known: Sequence[Row]) -> Row:
        replaced = ""
        if nth and not keys.is_single_valued(keys.vocabulary_key(fact.key)):
            replaced = ", ".join(row["id"] for row in known if self._says_only(row["value"], values(fact)[nth - 1]))
        return {
            "about": fact.about,
            "category": fact.category,
            "topic": fact.topic,
            "key": fact.key,
            "value": values(fact)[nth],
            "importance": 6,
            "confidence": 0.9,
            "messages": [n],
            "replaces": replaced or None,
        }

    def _says_only(self, text: str, value: str) -> bool:
        """Whether a known fact says this and no other planted thing, so that it is wholly untrue with it."""
        said, meant = frozenset(tokens(text)), frozenset(tokens(value))
        return meant <= said and not any(other <= said and not other <= meant for other in self._values)

    def _small_talk(self, row: Row) -> Row:
        text = row["text"]
        quoted = f"提到{text[:18]}" if language(text) == "zh" else f"mentioned {' '.join(text.split()[:9])}"
        return {
            "about": "self",
            "category": self._one_of(_SMALL, "category", row["at"], text),
            "topic": "",
            "key": "mentioned",
            "value": quoted,
            "importance": 3,
            "confidence": 0.6,
            "messages": [row["n"]],
            "replaces": None,
        }

    def _checked(self, rows: Sequence[Row]) -> Mapping[str, Any]:
        """Answers whether messages say what was noted of them, wrong one time in ten, the two known answers too."""
        verdicts = []
        for row in rows:
            text, value = row["text"], row["claim"].partition(": ")[2]
            fact, nth = self._told.get(text, (None, 0))
            # What small talk is noted in its own words.
            said = values(fact)[nth].startswith(value) if fact else text not in _UNSAID
            wrong = self._chance("check", *map(str, rows), str(row["n"])) < MISTAKES
            verdicts.append({"n": row["n"], "said": "yes" if said != wrong else "no"})
        return {"verdicts": verdicts}

    def _compressed(self, rows: Sequence[Row]) -> Mapping[str, Any]:
        """Returns one fact from the events of a night, or none: mostly what is known already."""
        known = [row for row in rows if "id" in row]
        events = [row for row in rows if "n" in row]
        if not events:
            return {"facts": []}
        event = events[-1]
        text = str(event["text"])
        where = (str(event), str(len(events)))
        if self._chance("repeat", *where) >= self._repeat:
            return {"facts": []}
        chance = self._chance("how", *where)
        lasting = [row for row in known if row["category"] not in _SMALL]
        if not lasting or chance >= WHOLE + CUT:
            fact = {**self._small_talk({"text": text, "at": "", "n": event["n"]}), "key": "talked about"}
        else:
            again = self._one_of(lasting, "which", *where)
            value = _plain(str(again["value"]))
            if chance < WHOLE:
                value = self._one_of(_OTHER_WORDS[language(value)], "words", *where).format(value)
            else:
                value = _half(value, 2 / 3)
            fact = {**again, "topic": again.get("topic", ""), "value": value, "importance": 5, "confidence": 0.6}
            fact.pop("id")
        numbers = [event["n"]]
        return {"facts": [{**fact, "messages": numbers, "events": numbers, "replaces": None}]}

    def _merged(self, rows: Sequence[Row]) -> Mapping[str, Any]:
        """One statement for several of the rows: well made, needless, or short of half of them."""
        rows = [row for row in rows if "id" in row]
        where = tuple(str(row["id"]) for row in rows)
        chance = self._chance("merge", *where)
        if chance < self._lossy:
            named = rows
            value = "; ".join(_half(str(row["value"]), 1 / 2) for row in rows[:: 2 if len(rows) > 4 else 1])
        elif chance < self._lossy + NEEDLESS:
            named = rows[:2]
            value = "; ".join(str(row["value"]) for row in named)
        else:
            named = []
            value = ""
            for row in rows:
                longer = _joined(_plain(str(one["value"])) for one in (*named, row))
                if len(longer) <= MERGED_CHARS:
                    named, value = [*named, row], longer
        if len(named) < 2:
            return {"merged": []}
        ids = [row["id"] for row in named]
        return {"merged": [{"ids": ids, "key": named[0]["key"], "value": value[:MERGED_CHARS]}]}

    def _compared(self, rows: Sequence[Row]) -> Mapping[str, Any]:
        """Returns the pairs in which a later value of a planted fact replaces an earlier one."""
        return {
            "pairs": [
                {"n": row["n"], "verdict": "replaces" if self._is_update(row) else "agree", "why": "changed"}
                for row in rows
            ]
        }

    def _is_update(self, row: Row) -> bool:
        older, newer = str(row["older"]["value"]), str(row["newer"]["value"])
        return any(
            self._says_only(older, before) and self._says_only(newer, after)
            for fact, nth in self._told.values()
            if nth == 0
            for said in [values(fact)]
            for n, before in enumerate(said)
            for after in said[n + 1 :]
        )

    def _insight(self, rows: Sequence[Row]) -> Mapping[str, Any]:
        shown = [row for row in rows if "n" in row][:2]
        said = [_half(_sentence(str(row["value"])), 1 / 2) for row in shown]
        text = (
            f"这一周你常说到{'，也说到'.join(said)}。看来这些对你要紧，之后也许还会问起。"
            if language(said[0]) == "zh"
            else f"You often came back to {' and to '.join(said)} this week. It matters now and may come up again."
        )
        return {"insight": text, "from": [row["n"] for row in shown]}

    def _names(self, rows: Sequence[Row]) -> Mapping[str, Any]:
        """Capitalised words behind the first of each text."""
        found: dict[str, list[Row]] = {}
        for row in rows:
            if "n" in row:
                names = re.findall(r"(?<=\s)[A-Z][a-z]{2,20}", str(row["note"]))[:3]
                found[str(row["n"])] = [{"name": name, "type": "other"} for name in names]
        return found

    def _manner(self, rows: Sequence[Row]) -> Mapping[str, Any]:
        wishes = "; ".join(str(row["wish"]) for row in rows)
        text = (
            f"你按照对方的愿望回答：{wishes}。" if language(wishes) == "zh" else f"You answer as they wish: {wishes}."
        )
        return {"manner": text}

    def _chance(self, *of: str) -> float:
        """A share from 0 to 1 that is the same for the same words."""
        digest = hashlib.blake2b("\0".join((str(self._seed), *of)).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64

    def _one_of(self, choices: Sequence[Any], *of: str) -> Any:
        return choices[int(self._chance(*of) * len(choices))]


def values(fact: Fact) -> tuple[str, ...]:
    """Returns the values of a fact from first to last."""
    return (fact.value, *(update.value for update in fact.updates))


def language(text: str) -> str:
    """ "zh" for text with a Chinese character in it, else "en"."""
    return "zh" if any("一" <= char <= "鿿" for char in text) else "en"


def _rows(material: str) -> list[Row]:
    """The JSON lines of what a model is shown."""
    return [json.loads(line) for line in material.splitlines() if line.startswith("{")]


def _sentence(text: str) -> str:
    return re.split(r"(?<=[.!?。！？])", " ".join(text.split()), maxsplit=1)[0][:120]


def _plain(text: str) -> str:
    """A value without the other words it was said in before."""
    for form in _OTHER_WORDS[language(text)]:
        head, tail = form.split("{}")
        if text.startswith(head) and text.endswith(tail):
            text = text[len(head) : len(text) - len(tail)]
    return text


def _half(text: str, share: float) -> str:
    """The first part of a text."""
    if language(text) == "zh":
        return text[: max(2, round(len(text) * share))]
    words = text.split()
    return " ".join(words[: max(2, round(len(words) * share))])


def _joined(texts: Iterable[str]) -> str:
    """All that texts say, each thing once."""
    said: list[str] = []
    for text in sorted(texts, key=lambda text: -len(text)):
        meant = set(tokens(text)) - stop_tokens()
        if not any(meant <= set(tokens(one)) for one in said):
            said.append(text)
    return "; ".join(said)
