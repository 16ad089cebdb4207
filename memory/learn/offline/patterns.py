"""Facts that people state about themselves, and their standing requests, found by patterns alone: no model.

Invariants: pure; time grows linearly with the text, of which only the first and the last `WINDOW` characters are read;
refusals come before patterns, so words that are asked, quoted, imagined, translated or about other people yield
nothing; masked secrets never enter a value. A doubtful sentence is left alone: a wrong memory costs more than a missing
one.

How it works: text → sentences → clauses. A clause is stripped of its opening ("by the way"), completed when its subject
was said before ("I live in Porto and *work as a nurse*"), checked against the refusals, and matched from its first word
on against a table of rules. The rest after a rule is the next clause. Here stand the steps down to the sentence and
the refusals of whole messages; clauses, tables and rules of English and Chinese, which people mix, are in a module
each, those of other languages in `clauses`. A text is read by the rules of the language it is written in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Final, Literal

from languages import Language
from memory.keys import category_of, normalise_value
from memory.learn.offline import clauses, en, zh
from memory.learn.offline.appointments import appointment
from memory.learn.offline.rules import HAN, EarlierClauses, Pair, Phrase, is_keepable, still_nameless
from memory.learn.own_words import own_words
from memory.learn.wishes import passes_on
from memory.text.language import language_of
from memory.text.sentences import parts

#: The characters read at each end of a message; people introduce themselves at the edges of long texts.
WINDOW: Final = 4_000
#: Keys whose values name a place or a post, and the words for a day that may stand before or behind one.
_PLACED: Final = frozenset({"home", "hometown", "employer", "occupation", "studies"})
_SINCE_DAY: Final = re.compile(
    r"[ ,]+(?:(?:since |as of |from )?(?:yesterday|today|tonight|this (?:morning|week|month|year)|recently|lately"
    r"|the day before yesterday)|(?:seit )?(?:gestern|heute|vorgestern|neulich|kürzlich)"
    r"|(?:desde )?(?:ayer|hoy|anteayer|anoche)|(?:depuis )?(?:hier|aujourd'hui|avant-hier|récemment))$"
    r"|^(?:昨日|今日|一昨日|おととい|きのう|きょう|先日|昨天|今天|前天|刚刚|最近)(?:から)?",
    re.IGNORECASE,
)
#: Facts taken from one message at most: more is a list pasted in, not talk.
MOST_FACTS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """Something worth remembering, before the memory decides about it.

    `importance` is 1 to 10, `confidence` 0 to 1. `subject` is "self": facts about relatives are the speaker's, under
    the relation as key. Validity is left open here: what counts is when it was said.
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


def extract(text: str, *, today: date) -> list[Disclosure]:
    """Returns the disclosures in `text`, said on `today` by the person themselves; each (key, value) once, in order.

    Standing requests ("from now on …", 以后请…) are facts of the category `instruction`. Dates in plans and notes are
    made absolute. Nothing found is the normal case.
    """
    found: dict[tuple[str, str], Disclosure] = {}
    for language, said in _facts(text, today):
        fact = _undated(said)
        importance, confidence = _WEIGHTS.get(fact.key, _DEFAULT_WEIGHTS)
        candidate = Disclosure(
            kind="fact",
            category=category_of(fact.key) or "relation",
            key=fact.key,
            value=fact.value.strip(),
            subject="self",
            importance=importance,
            confidence=confidence,
            topic="",
            valid_from=None,
            valid_until=None,
            language=language,
        )
        found.setdefault((fact.key, normalise_value(fact.value)), candidate)
        if len(found) == MOST_FACTS:
            break
    return list(found.values())


def discloses(text: str) -> bool:
    """Returns whether `text` holds a self-disclosure or a standing request, by the rules of `extract`."""
    # Which day it is changes how a plan is written, not whether it is one.
    return next(_facts(text, date(2000, 1, 1)), None) is not None


_SENTENCE_END = Phrase(r"[!?！？。；;\n]+|(?<!\d)\.+|\.+(?!\d)|…+|～$")
_ABBREVIATED = Phrase(r"(?:\b[A-Z]|\b(?:Dr|Mr|Mrs|Ms|St|vs|approx))$")
_WORD = Phrase(r"[A-Za-z]{2}|\b[Ii]\b")


def _undated(fact: Pair) -> Pair:
    """Returns a fact about a home or employer without the day since when it holds: "Bilbao yesterday"."""
    if fact.key not in _PLACED:
        return fact
    value = _SINCE_DAY.sub("", fact.value).strip(" ,、，")
    return fact._replace(value=value) if value else fact


def _facts(text: str, today: date) -> Iterator[tuple[Language, Pair]]:
    if len(text) > 2 * WINDOW:
        text = f"{text[:WINDOW]}\n{text[-WINDOW:]}"
    if _STAGED.match(text) or _ACTED.search(text):
        return
    text = own_words(text, given=False)
    if _JOKE.search(text):
        return
    written = language_of(text)
    if written in clauses.CODES:
        yield from _in_clauses(text, written, today)
        return
    found = False
    tasked = _TASK.search(text) is not None
    in_english, in_chinese = EarlierClauses(today, tasked=tasked), EarlierClauses(today, tasked=tasked)
    sentences = [*_sentences(text), ""]
    for sentence, following in pairwise(sentences):
        if _NOT_ONESELF.search(sentence):
            break
        laughed = _LAUGHTER.search(sentence) or _LAUGHTER.match(following)
        for language, pair in _with_appointment(_said(sentence, in_english, in_chinese), sentence, today):
            # People don't laugh about an allergy that they have, and often about one that they don't have.
            if is_keepable(pair.value) and not (laughed and pair.key == "allergy"):
                found = True
                yield language, pair
    yield from (("zh", pair) for pair in still_nameless(in_chinese))
    yield from (("en", pair) for pair in still_nameless(in_english))
    if written is None and not found:
        # The text is too short to show its language: it is in the language whose patterns read it.
        yield from next(filter(None, (list(_in_clauses(text, code, today)) for code in clauses.CODES)), [])


def _in_clauses(text: str, code: Language, today: date) -> Iterator[tuple[Language, Pair]]:
    for sentence in parts(text):
        if _NOT_ONESELF.search(sentence):
            return
        found: Iterator[tuple[Language, Pair]] = ((code, pair) for pair in clauses.pairs(sentence, code))
        dated = _with_appointment(found, sentence, today, code)
        kept = ((code, pair) for code, pair in dated if is_keepable(pair.value))
        yield from (fact for fact in kept if fact[1].key != "called" or not passes_on(sentence))


def _with_appointment(
    found: Iterator[tuple[Language, Pair]], sentence: str, today: date, code: Language | None = None
) -> Iterator[tuple[Language, Pair]]:
    """Yields the facts found in a sentence and, if no plan is among them, the appointment that it tells."""
    planned = False
    for language, pair in found:
        planned = planned or pair.key == "plan"
        yield language, pair
    code = code or ("zh" if HAN.search(sentence) else "en")
    if not planned and (value := appointment(sentence, code=code, today=today)):
        yield code, Pair("plan", value)


def _said(sentence: str, in_english: EarlierClauses, in_chinese: EarlierClauses) -> Iterator[tuple[Language, Pair]]:
    if HAN.search(sentence):
        yield from (("zh", pair) for pair in zh.pairs(sentence, in_chinese))
    if _WORD.search(sentence):
        yield from (("en", pair) for pair in en.pairs(sentence, in_english))


def _sentences(text: str) -> Iterator[str]:
    """Yields sentences with the signs that end them."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match.group() == "." and _ABBREVIATED.regex.search(text, max(start, match.start() - 8), match.start()):
            continue
        yield text[start : match.end()].strip()
        start = match.end()
    yield text[start:].strip()


#: From this sentence on a message is a game, a text to be worked on, or an example.
_NOT_ONESELF = Phrase(
    r"\b(?:pretend\w{0,3}|role-?\s?play\w{0,3}|let's play|lets play|imagin(?:e|ing)|suppos(?:e|ing)"
    r"|hypothetical\w{0,2}|act(?:ing)? (?:as|like)|in character|you are an?|you're an?|translat(?:e|ion)|proofread"
    r"|paraphrase|rephrase|rewrite|correct (?:this|the|my)|how (?:do|would|to) (?:you |i |we )?say|(?:this|the"
    r"|following) (?:sentence|phrase|text)|sentences?:|grammar|lyrics?|song goes|(?:in|of|for) (?:the|an?"
    r"|my) (?:story|poem|essay|novel)|screenplay|cover letter|example:|for example|dear (?:sir|madam|mr|ms|mrs"
    r"|hiring)|once upon|summari[sz]e(?: this| the|:)|reply to (?:this|the)|this email|the email)(?!\w)|(?:^"
    r"|please |you |help me |, )write (?:an?|me|my|the) |你来[当扮]|假装|假裝|扮演|假设|假設|想象一?下?"
    r"|(?<![名位个個])翻[译譯]|润色|潤色|改写|改寫|造句|[这這]句[话話]|怎么说|怎麼說|歌[词詞]|故事|作文|[写寫]一?[首篇封段个個]|例如"
    r"|比如[说說]|[举舉][个個]例子|台[词詞]|小[说說][里裡]|亲爱的|親愛的",
    re.IGNORECASE,
)
#: Stage directions at the start of a message: "*walks in*", "(in a deep voice)", （走进来）. Words of the speaker about
#: themselves, an age or an aside ("(btw …)", （补充一下）) are none.
_STAGED = Phrase(
    r"\s{0,20}(?:\*(?![\s*])(?!(?:i|i'm|my|me)\b)[^*\n]{1,120}\*(?!\*)|_(?![\s_])[a-z]{2,20}s\b[^_\n]{0,120}_(?!_)"
    r"|[(（\[【]\s?(?:(?!(?:this|his|is|was|has|does|yes|as|us|ps|plus|thanks|always|sometimes|perhaps|nothing|anything"
    r"|something|everything|during|regarding|following|btw|news|its|being|having)\b)[a-z]{2,20}(?:s|ing)\b"
    r"|(?:in|with) an? [\w ]{2,30}(?:voice|tone|accent|whisper|smile|grin)|scene\b|setting\b|narrator\b|enter\b)"
    r"[^()（）\[\]【】\n]{0,120}[)）\]】]"
    r"|[(（\[【](?=[^()（）\[\]【】\n]{0,120}[\u3400-\u9fff])(?![^()（）\[\]【】\n]{0,120}(?:[我俺\d：:男女]|补充|補充|顺便|順便"
    r"|对了|對了|抱歉|不好意思|更正|备注|備註|回复|回覆|接上|续|續|急|在线|線上|谢谢|謝謝|已|说明|說明|其实|其實|提醒|另外|注意"
    r"|先说|先說|认真|認真|真的|重要|匿名|首先|如题|如題))[^()（）\[\]【】\n]{1,120}[)）\]】])",
    re.IGNORECASE,
)
#: An action in asterisks later on: "*draws his sword*"; a single word within a sentence is stressed and not acted.
_ACTED = Phrase(r"(?<![\w*])\*[a-z]{2,20}s(?: [^*\n]{1,120}\*(?![\w*])|\*\s{0,9}$)", re.MULTILINE)
_LAUGHTER = Phrase(
    r"\b(?:lo+l+z?|lmf?ao+|rofl|(?:ha){2,20}h?|(?:he){2,20}h?|hihi|xd+|hh+)\b|哈哈|嘿嘿|呵呵|嘻嘻|笑死|233"
    r"|[😂🤣😆😹😜😝🤪🙃]",
    re.IGNORECASE,
)
_JOKE = Phrase(
    r"\b(?:just kidding|jk|j/k|only joking|just joking|im joking|i'm joking)\b|(?<!\S)/s\b|[开開]玩笑|[骗騙]你的"
    r"|逗你",
    re.IGNORECASE,
)
_TASK = Phrase(
    r"\b(?:summari[sz]e|write|draft|generate|explain (?:how|what|why|the|this)|tell me (?:about|how|what|why|a)"
    r"|give me|list (?:the|\d|some)|what(?:'s| is| are| does| was)|how (?:do|does|to|can|many|much)|why (?:is|are"
    r"|do|does)|who (?:is|was)|this (?:question|email|text)|the (?:question|email|following))\b|总结|總結|解释一下"
    r"|解釋一下|什么是|什麼是|介绍一下|介紹一下|[帮幫]我(?:[写寫查找做改]|看一?下)",
    re.IGNORECASE,
)
_DEFAULT_WEIGHTS = (6, 0.85)
#: (importance 1-10, confidence 0-1) by key: facts whose loss does harm stand highest; wishes are said more lightly.
_WEIGHTS = {
    "name": (9, 0.95),
    "called": (9, 0.95),
    "allergy": (9, 0.95),
    "condition": (9, 0.9),
    "boundary": (9, 0.9),
    "diet": (8, 0.9),
    "instruction": (8, 0.9),
    "home": (7, 0.9),
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
