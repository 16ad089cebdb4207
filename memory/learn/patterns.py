"""Facts people state about themselves, and what they ask for from now on, found by patterns alone: no model.

Invariants: pure; time grows linearly with the text, of which only the first and the last `WINDOW` characters are read;
refusals come before patterns, so what is asked, quoted, imagined, translated or said of somebody else yields nothing;
masked secrets never enter a value. A doubtful sentence is left alone: a wrong memory costs more than a missing one.

How it works: text → sentences → clauses. A clause is stripped of its opening ("by the way"), completed when its subject
was said before ("I live in Porto and *work as a nurse*"), checked against the refusals, and matched from its first word
on against a table of rules. What a rule leaves over is the next clause. Rules of both languages stand in tables below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from memory.dates import anchor, mentions, number_zh
from memory.learn.keys import VALUE_LIMIT, category_of, normalise_key, normalise_value

Language: TypeAlias = Literal["en", "zh"]

#: How many characters are read at each end of a message; people introduce themselves at the edges of long texts.
WINDOW: Final = 4_000
#: Facts taken from one message at most: more is a list pasted in, not talk.
MOST_FACTS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something worth remembering, before the memory decides about it.

    `importance` is 1 to 10, `confidence` 0 to 1. `subject` is "self": facts about relatives are the speaker's, under the
    relation as key. Validity stays open here: when it was said is what counts.
    """

    kind: Literal["fact", "style"]
    category: str
    key: str
    value: str
    subject: str
    importance: int
    confidence: float
    topic: str
    valid_from: date | None
    valid_until: date | None
    language: Language


def extract(text: str, *, today: date) -> list[Candidate]:
    """What `text`, said on `today` by the person themselves, discloses about them; each (key, value) once, in order.

    Standing requests ("from now on …", 以后请…) are facts of the category `instruction`. Dates in plans and notes are made
    absolute. Nothing found is the normal case.
    """
    found: dict[tuple[str, str], Candidate] = {}
    for fact in _facts(text, today):
        importance, confidence = _WEIGHTS.get(fact.key, _DEFAULT_WEIGHTS)
        candidate = Candidate(
            kind="fact",
            category=category_of(fact.key) or "relation",
            key=fact.key,
            value=fact.value,
            subject="self",
            importance=importance,
            confidence=confidence,
            topic="",
            valid_from=None,
            valid_until=None,
            language=fact.language,
        )
        found.setdefault((fact.key, normalise_value(fact.value)), candidate)
        if len(found) == MOST_FACTS:
            break
    return list(found.values())


def discloses(text: str) -> bool:
    """Whether `text` holds a self-disclosure or a standing request, by the same rules as `extract`; stops at the first."""
    # Which day it is changes how a plan is written, not whether it is one.
    return next(_facts(text, date(2000, 1, 1)), None) is not None


# ---------------------------------------------------------------------------------------------- the way of a text


class _Fact(NamedTuple):
    language: Language
    key: str
    value: str


_Read: TypeAlias = Callable[[re.Match[str]], Iterable[tuple[str, str]]]


class _Rule(NamedTuple):
    """`pattern` is matched at the start of a clause; `read` gives (key, value) pairs, none to refuse."""

    pattern: re.Pattern[str]
    read: _Read


#: Stands where something was cut out (a quotation, code, a link); no value may hold it.
_HOLE = "\ufffc"
_SECRET = re.compile(r"\[secret:[^\]\n]{0,80}\]?")
_CUT = (
    re.compile(r"```.*?(?:```|\Z)", re.DOTALL),
    re.compile(r"`[^`\n]{1,400}`"),
    re.compile(r"^[ \t]{0,8}(?:>|\$ |#!|//|/\*|import |def |var |let |const |/\w).*$", re.MULTILINE),
    re.compile(r"^.*[♪♫🎵🎶].*$", re.MULTILINE),
    re.compile(r"\bhttps?://\S{1,2000}"),
)
_QUOTED = re.compile(
    r'"([^"\n]{0,400})(?:"|$)|“([^”\n]{0,400})(?:”|$)|「([^」\n]{0,400})(?:」|$)|『([^』\n]{0,400})(?:』|$)|«([^»\n]{0,400})(?:»|$)'
    r"|(?<![\w'])'(?=[^\s'])([^\n]{1,200}?)(?<=[^\s'])'(?!\w)|‘([^’\n]{1,200})’(?!\w)",
    re.MULTILINE,
)
_SPEAKING = re.compile(r"\b(?:i|i'm|i’m|im|my|me|we|don't|please)\b|[我俺咱]|别|请", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?。！？；;\n]{0,2000}(?:(?<=\d)\.(?=\d)[^.!?。！？；;\n]{0,2000}|(?:(?<=\b[A-Z])|(?<=\b[DdMmSs][rRtT])|(?<=\bMrs))\.(?=\s?[A-Z])[^.!?。！？；;\n]{0,2000})*[.!?。！？；;\n]{0,20}")
_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[A-Za-z]{1}[A-Za-z']{0,30}")


def _facts(text: str, today: date) -> Iterator[_Fact]:
    if len(text) > 2 * WINDOW:
        text = f"{text[:WINDOW]}\n{text[-WINDOW:]}"
    text = _without_foreign_words(text)
    if _JOKE.search(text):
        return
    tasked = bool(_TASK_EN.search(text) or _TASK_ZH.search(text))
    english, chinese = _English(today, tasked), _Chinese(today, tasked)
    for match in _SENTENCE.finditer(text):
        sentence = match.group().strip()
        if not sentence:
            continue
        if _NOT_ONESELF.search(sentence):
            return
        if _HAN.search(sentence):
            yield from chinese.sentence(sentence)
        if _LATIN.search(sentence):
            yield from english.sentence(sentence)


def _without_foreign_words(text: str) -> str:
    """Code, links, quoted lines, secrets and other people's words cut out; a short quoted name keeps its words."""
    text = _SECRET.sub(_HOLE, text)
    for pattern in _CUT:
        text = pattern.sub(_HOLE, text)

    def judge(match: re.Match[str]) -> str:
        inner = next((group for group in match.groups() if group is not None), "")
        if _SPEAKING.search(inner) or len(inner) > 40 or not inner.strip():
            return _HOLE
        return inner

    return _QUOTED.sub(judge, text)


#: From here on a message is a game, a text to be worked on or an example.
_NOT_ONESELF = re.compile(
    r"\b(?:pretend|role-?\s?play|let's play|imagine|suppose|hypothetical|act as|acting as|in character|you are a|you're a"
    r"|translat(?:e|ion)|proofread|paraphrase|rephrase|rewrite|correct (?:this|the|my)|how (?:do|would|to) (?:you |i |we )?say"
    r"|this sentence|the sentence|sentences?:|grammar|lyrics?|song goes|the story|a story|a poem|an essay|a novel|screenplay"
    r"|cover letter|write (?:a|an|me)|example:|for example|dear (?:sir|madam|mr|ms|mrs|hiring))\b"
    r"|假装|扮演|假设|角色|想象|翻译|翻譯|润色|潤色|改写|改寫|造句|这句话|這句話|用英语怎么说|用英文怎麼說|怎么说|歌词|歌詞|故事|作文|写一[首篇封段个]"
    r"|写个|寫一[首篇封段個]|例如|比如说|举个例子|台词|小说里|假如|亲爱的",
    re.IGNORECASE,
)
_JOKE = re.compile(r"\b(?:just kidding|jk|j/k|only joking|just joking|kidding lol)\b|(?<!\S)/s\b|开玩笑|開玩笑|骗你的|騙你的|逗你", re.I)
_TASK_EN = re.compile(
    r"\b(?:translate|summari[sz]e|write|draft|generate|explain (?:to me )?(?:how|what|why|the|this)|tell me (?:about|how|what|why|a)|give me|list (?:the|\d|some)"
    r"|what (?:is|are|does|was)|how (?:do|does|to|can)|why (?:is|are|do|does)|who (?:is|was)|question|email)\b",
    re.IGNORECASE,
)
_TASK_ZH = re.compile(r"翻译|翻譯|总结|总結|写[一个篇封首段]|寫[一個篇封首段]|解释一下|什么是|介绍一下|帮我[写查找做改]|幫我[寫查找做改]|[?？]")

_DEFAULT_WEIGHTS = (6, 0.85)
#: (importance 1-10, confidence 0-1) by key: what harms when forgotten stands highest; wishes are said more lightly.
_WEIGHTS = {
    "name": (9, 0.95),
    "called": (9, 0.95),
    "allergy": (9, 0.95),
    "condition": (9, 0.9),
    "boundary": (9, 0.9),
    "diet": (8, 0.9),
    "instruction": (8, 0.9),
    "home": (7, 0.9),
    "hometown": (6, 0.9),
    "birthday": (7, 0.95),
    "occupation": (7, 0.9),
    "employer": (7, 0.85),
    "timezone": (7, 0.9),
    "note": (7, 0.95),
    "likes": (5, 0.8),
    "dislikes": (5, 0.8),
    "goal": (6, 0.75),
    "plan": (5, 0.75),
    "owns": (4, 0.75),
}
