"""Facts people state about themselves, and what they ask for from now on, found by patterns alone: no model.

Invariants: pure; time grows linearly with the text, of which only the first and the last `WINDOW` characters are read;
refusals come before patterns, so what is asked, quoted, imagined, translated or said of somebody else yields nothing;
masked secrets never enter a value. A doubtful sentence is left alone: a wrong memory costs more than a missing one.

How it works: text → sentences → clauses. A clause is stripped of its opening ("by the way"), completed when its subject
was said before ("I live in Porto and *work as a nurse*"), checked against the refusals, and matched from its first word
on against a table of rules. What a rule leaves over is the next clause. The tables of both languages stand below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

from memory.dates import anchor, mentions, number_zh
from memory.keys import RELATIONS, VALUE_LIMIT, category_of, normalise_key, normalise_value

Language: TypeAlias = Literal["en", "zh"]

#: How many characters are read at each end of a message; people introduce themselves at the edges of long texts.
WINDOW: Final = 4_000
#: Longest clause that is read, in characters; nobody says more in one breath.
_CLAUSE: Final = 400
#: Facts taken from one message at most: more is a list pasted in, not talk.
MOST_FACTS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
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


def extract(text: str, *, today: date) -> list[Candidate]:
    """What `text`, said on `today` by the person themselves, discloses about them; each (key, value) once, in order.

    Standing requests ("from now on …", 以后请…) are facts of the category `instruction`. Dates in plans and notes are
    made absolute. Nothing found is the normal case.
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
    """Whether `text` holds a self-disclosure or a standing request, by the rules of `extract`; stops at the first."""
    # Which day it is changes how a plan is written, not whether it is one.
    return next(_facts(text, date(2000, 1, 1)), None) is not None


# ------------------------------------------------------------------------------------------- from text to clauses


class _Fact(NamedTuple):
    language: Language
    key: str
    value: str


class _Pair(NamedTuple):
    """`unnamed` marks a pet or a relative whose name may come next; without a value it is not told yet."""

    key: str
    value: str
    unnamed: bool = False


#: Reads the named groups that matched, as they were written, on the day they were said; nothing to refuse.
_Read: TypeAlias = Callable[[dict[str, str], date], Iterable[_Pair]]


class _Rule(NamedTuple):
    """What is matched at the start of a clause and what it then says."""

    pattern: str
    read: _Read

    def match(self, clause: str) -> re.Match[str] | None:
        return _compiled(self.pattern).match(clause)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # At the first use and not at import: two hundred patterns take a third of a second, half of it for a language
    # that may never be spoken here.
    return re.compile(pattern)


class _Context:
    """What earlier clauses of the same message leave for later ones."""

    def __init__(self, today: date, *, tasked: bool) -> None:
        self.today = today
        #: The message sets a task, so a wish about style is about that task and not for ever.
        self.tasked = tasked
        #: Whether the last clause spoke of the speaker, who may then go unsaid; None as long as nobody was spoken of.
        self.carried: bool | None = None
        #: Somebody mentioned without a name, who may be named next: "I have a dog. His name is Rex."
        self.nameless: _Pair | None = None
        self.greeted = False
        #: The last clause was about a relative of the speaker, so the next may name another one without 我.
        self.kin = False


#: How many pets there are, before what they are.
_COUNTED = re.compile(r"(?:two|three|four|five|six|\d) |[一两兩二三四五六\d][只隻条條个個匹头頭窝窩对對]")
#: Stands where something was cut out (a quotation, code, a link, a secret); no value may hold it.
_HOLE = "\ufffc"
_CUT = (
    re.compile(r"\[secret:[^\]\n]{0,80}\]?"),
    re.compile(r"```.*?(?:```|\Z)", re.DOTALL),
    re.compile(r"`[^`\n]{1,400}`"),
    re.compile(r"^[ \t]{0,8}(?:>|\$ |#!|//|/\*|import |def |var |let |const |print|/\w).*$", re.MULTILINE),
    re.compile(r"^.*[♪♫🎵🎶].*$", re.MULTILINE),
    re.compile(r"\bhttps?://\S{1,2000}"),
)
_QUOTED = re.compile(
    r'"([^"\n]{0,400})(?:"|$)|“([^”\n]{0,400})(?:”|$)|「([^」\n]{0,400})(?:」|$)|『([^』\n]{0,400})(?:』|$)'
    r"|(?<![\w'])'(?=[^\s'])([^\n]{1,200}?)(?<=[^\s'])'(?!\w)|‘([^’\n]{1,200})’(?!\w)|《([^》\n]{1,60})》",
    re.MULTILINE,
)
_SPEAKING = re.compile(r"\b(?:i|i'm|i’m|im|my|me|we|don't|please)\b|[我俺咱]|别|请", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[!?！？。；;\n]+|(?<!\d)\.+|\.+(?!\d)|…+|～$")
_ABBREVIATED = re.compile(r"(?:\b[A-Z]|\b(?:Dr|Mr|Mrs|Ms|St|vs|approx))$")
_HAN = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[A-Za-z]{2}|\b[Ii]\b")


def _facts(text: str, today: date) -> Iterator[_Fact]:
    for language, pair in _pairs(text, today):
        if _is_keepable(pair.value):
            yield _Fact(language, pair.key, pair.value)


def _pairs(text: str, today: date) -> Iterator[tuple[Language, _Pair]]:
    if len(text) > 2 * WINDOW:
        text = f"{text[:WINDOW]}\n{text[-WINDOW:]}"
    text = _own_words(text)
    if _JOKE.search(text):
        return
    tasked = _TASK.search(text) is not None
    english, chinese = _Context(today, tasked=tasked), _Context(today, tasked=tasked)
    for sentence in _sentences(text):
        if _NOT_ONESELF.search(sentence):
            break
        if _HAN.search(sentence):
            yield from (("zh", pair) for pair in _chinese(sentence, chinese))
        if _WORD.search(sentence):
            yield from (("en", pair) for pair in _english(sentence, english))
    yield from (("zh", pair) for pair in _still_nameless(chinese))
    yield from (("en", pair) for pair in _still_nameless(english))


def _own_words(text: str) -> str:
    """Code, links, quoted lines, secrets and others' words cut out; a short quoted name only loses its quotes."""
    for pattern in _CUT:
        text = pattern.sub(_HOLE, text)
    return _QUOTED.sub(_unquoted, text)


def _unquoted(match: re.Match[str]) -> str:
    inner = next((group for group in match.groups() if group is not None), "")
    title = match.group().startswith("《")
    if not title and (_SPEAKING.search(inner) or len(inner) > 40):
        return _HOLE
    return inner or " "


def _sentences(text: str) -> Iterator[str]:
    """Sentences with the signs that end them."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match.group() == "." and _ABBREVIATED.search(text, max(start, match.start() - 8), match.start()):
            continue
        yield text[start : match.end()].strip()
        start = match.end()
    yield text[start:].strip()


def _rule(pattern: str, read: _Read) -> _Rule:
    return _Rule(f"(?i){pattern}", read)


def _apply(rules: Iterable[_Rule], clause: str, today: date) -> tuple[list[_Pair], str] | None:
    """What the first fitting rule says, and what it leaves of `clause`."""
    for rule in rules:
        match = rule.match(clause)
        if match:
            groups = {name: found for name, found in match.groupdict().items() if found}
            pairs = [pair for pair in rule.read(groups, today) if pair.unnamed or _is_keepable(pair.value)]
            if pairs:
                return pairs, clause[match.end() :]
    return None


def _told(pairs: Iterable[_Pair], context: _Context) -> Iterator[_Pair]:
    """Pairs as they are, but a pet or a relative without a name waits for the next clause to give it."""
    for pair in pairs:
        if pair.unnamed:
            yield from _still_nameless(context)
            context.nameless = pair
        else:
            if pair.key in RELATIONS:
                context.nameless = _Pair(pair.key, "", unnamed=True)
            yield pair


def _still_nameless(context: _Context) -> Iterator[_Pair]:
    """The pet that was kept waiting, when its name did not come."""
    if context.nameless and context.nameless.value:
        yield context.nameless
    context.nameless = None


def _with_name(nameless: _Pair, name: str) -> _Pair:
    if nameless.key != "pet":
        return _Pair(nameless.key, name)
    animal = _COUNTED.sub("", nameless.value)
    return _Pair("pet", f"{animal if animal == nameless.value else animal.removesuffix('s')} {name}")


def _is_keepable(value: str) -> bool:
    return 0 < len(value) <= VALUE_LIMIT and _HOLE not in value and any(c.isalnum() for c in value)


# -------------------------------------------------------------------------------------- refusals of whole messages

#: From this sentence on a message is a game, a text to be worked on, or an example.
_NOT_ONESELF = re.compile(
    r"\b(?:pretend\w{0,3}|role-?\s?play\w{0,3}|let's play|lets play|imagin(?:e|ing)|suppos(?:e|ing)"
    r"|hypothetical\w{0,2}|act(?:ing)? (?:as|like)|in character|you are an?|you're an?|translat(?:e|ion)|proofread"
    r"|paraphrase|rephrase|rewrite|correct (?:this|the|my)|how (?:do|would|to) (?:you |i |we )?say|(?:this|the"
    r"|following) (?:sentence|phrase|text)|sentences?:|grammar|lyrics?|song goes|(?:in|of|for) (?:the|an?"
    r"|my) (?:story|poem|essay|novel)|screenplay|cover letter|example:|for example|dear (?:sir|madam|mr|ms|mrs"
    r"|hiring)|once upon|summari[sz]e(?: this| the|:)|reply to (?:this|the)|this email|the email)(?!\w)|(?:^"
    r"|please |you |help me |, )write (?:an?|me|my|the) |你来[当扮]|假装|假裝|扮演|假设|假設|想象一?下?|翻译|翻譯"
    r"|润色|潤色|改写|改寫|造句|[这這]句[话話]|怎么说|怎麼說|歌[词詞]|故事|作文|[写寫]一?[首篇封段个個]|例如"
    r"|比如[说說]|[举舉][个個]例子|台[词詞]|小[说說][里裡]|亲爱的|親愛的",
    re.IGNORECASE,
)
_JOKE = re.compile(
    r"\b(?:just kidding|jk|j/k|only joking|just joking|im joking|i'm joking)\b|(?<!\S)/s\b|[开開]玩笑|[骗騙]你的"
    r"|逗你",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"\b(?:summari[sz]e|write|draft|generate|explain (?:how|what|why|the|this)|tell me (?:about|how|what|why|a)"
    r"|give me|list (?:the|\d|some)|what(?:'s| is| are| does| was)|how (?:do|does|to|can|many|much)|why (?:is|are"
    r"|do|does)|who (?:is|was)|this (?:question|email|text)|the (?:question|email|following))\b|总结|總結|解释一下"
    r"|解釋一下|什么是|什麼是|介绍一下|介紹一下|[帮幫]我(?:[写寫查找做改]|看一?下)",
    re.IGNORECASE,
)

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


# ----------------------------------------------------------------------------------------------- English: clauses


def _english(sentence: str, context: _Context) -> Iterator[_Pair]:
    """What the clauses of a sentence say that are neither asked, doubted, reported nor supposed."""
    asked = "?" in sentence[-6:] or "？" in sentence[-6:]
    text = _SHORT_FORMS.sub(_long_form, sentence.replace("’", "'").strip(" .!?！？。；;…~\n"))
    if text.isupper() and len(text) > 12:
        text = text.lower().replace("i'm", "I'm")  # shouting hides where the names are
    context.greeted = context.greeted or _GREETING_EN.match(text) is not None
    if _REPORTED.search(text):
        context.carried = False
        return
    text = re.sub(r"\s?\(\d{1,2}\)", "", text)  # "Emma (8) and Noah (5)"
    text = _AS_A_EN.sub(r"I'm \1, ", _OWN_REPORT.sub("", text))
    segments = [segment for segment in _SEGMENT_EN.split(text) if segment.strip()]
    # "I'm vegan, what can I eat?" states and asks; "I'm vegan?" and "you know I'm vegan, right?" only ask.
    if asked and segments and (len(segments) == 1 or not _QUESTION_EN.match(_bare_en(segments[-1]))):
        asked_from = 0
    else:
        asked_from = len(segments) - 1 if asked else len(segments)
    poisoned = False
    for number, segment in enumerate(segments):
        if _TURN_EN.match(segment):
            poisoned = False
        refused = poisoned or number >= asked_from
        for clause in _RUN_ON_EN.split(_DATE_FIRST_EN.sub(r"\2 \1", segment)):
            bare = _bare_en(clause)
            refused = refused or bool(_QUESTION_EN.match(bare)) or bool(_HAN.match(bare))
            said, condition = clause, _CONDITION_EN.search(clause)
            if condition:  # "I live in Porto if that helps"
                said, poisoned = clause[: condition.start()], True
                bare = _bare_en(said)
            spread = _POISON_EN.search(said) is not None
            refused = refused or spread or _DOUBT_EN.search(said) is not None
            poisoned = poisoned or spread
            if number >= asked_from and (polite := _POLITE_EN.match(bare)):
                yield from _requests_en(bare[polite.end() :], context)
            elif not refused and bare:
                yield from _clause_en(bare, context)
            if refused:
                context.carried = False


def _long_form(match: re.Match[str]) -> str:
    return _LONG_FORMS[match.group().lower()]


def _bare_en(clause: str) -> str:
    """A clause without its openings: "oh and by the way, I'm …" → "I'm …"."""
    clause = clause.strip(" ,-–—:()")
    for _ in range(8):
        match = _OPENING_EN.match(clause)
        if not match:
            break
        clause = clause[match.end() :].lstrip(" ,-–—:()")
    return clause


def _clause_en(clause: str, context: _Context) -> Iterator[_Pair]:
    """What one clause and its continuations say."""
    clause = clause[:_CLAUSE]
    whole, leftover = clause, False
    for _ in range(8):
        if not clause or _DOUBT_EN.search(clause):
            break
        named = _NAMED_EN.match(clause)
        if named and context.nameless:
            for name in _names_en(named["v"]):
                yield _with_name(context.nameless, name)
            context.nameless = None
            return
        if not leftover:
            yield from _still_nameless(context)
        requests = list(_requests_en(clause, context))
        if requests:
            yield from requests
            break
        forms = [clause]
        if (context.carried and not _SUBJECT_EN.match(clause)) or (context.carried is None and _ALONE_EN.match(clause)):
            forms += [f"I {clause}", f"I'm {clause}", f"I have {clause}"]
        for form in forms:
            applied = _apply(_RULES_EN, form, context.today)
            if not applied and form is clause:  # a name is only believed where "I'm" was really said
                applied = _apply(_GREETED_EN if context.greeted else _INTRODUCED_EN, form, context.today)
            if applied:
                break
        else:
            # "allergic to nuts" may open a message; "live in the moment" must not become a home by itself.
            if not leftover:
                context.carried = bool(_SELF_EN.match(clause))
            break
        pairs, rest = applied
        context.carried = bool(_SELF_EN.match(form)) or pairs[0].key not in RELATIONS | {"pet"}
        yield from _told(pairs, context)
        clause, leftover = _bare_en(rest), True
    yield from _mentions_en(whole)


def _mentions_en(clause: str) -> Iterator[_Pair]:
    """Relatives and pets named in passing: "visiting my sister Ana"."""
    for match in _MENTION_EN.finditer(clause):
        if not _NOT_NAMES.fullmatch(match["v"]):
            key = _RELATIONS_EN.get(match["r"].lower())
            yield _Pair(key, match["v"]) if key else _Pair("pet", f"{match['r'].lower()} {match['v']}")


def _requests_en(clause: str, context: _Context) -> Iterator[_Pair]:
    """Standing requests: what to call them, what not to speak of, how to answer, what to remember."""
    clause = _PLEASE_EN.sub("", clause).strip(" ,")
    standing = _STANDING_EN.search(clause)
    if standing:
        clause = f"{clause[: standing.start()]} {clause[standing.end() :]}".strip(" ,:")
        clause = _PLEASE_EN.sub("", clause).strip(" ,")
        if re.match(r"(?:I|I'm|my|we)\b", clause):
            yield from _clause_en(clause, context)
            return
    if _ONE_OFF_EN.search(clause):
        return
    remember = _REMEMBER_EN.match(clause)
    if remember:
        told = _bare_en(clause[remember.end() :])
        facts = list(_clause_en(told, context)) if told else []
        if any(pair.key != "plan" for pair in facts):
            yield from facts
        elif told:
            yield _Pair("note", anchor(told, context.today))
        return
    applied = _apply(_REQUESTS_EN, clause, context.today)
    if applied:
        yield from applied[0]
        return
    match = _ORDER_EN.match(clause)
    if match and not _NOT_ORDERS_EN.search(clause):
        polite = _tail_cut(clause, _THANKS_EN)
        if standing or match["always"] or (_STYLE_EN.match(clause) and not context.tasked and ":" not in clause):
            yield _Pair("instruction", polite)


def _tail_cut(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub("", text).strip(" ,.!~-:;")


# ------------------------------------------------------------------------------------------ English: words and signs


def _words(text: str) -> str:
    """A list of words as one alternative of a pattern; an underscore stands for a space inside a phrase."""
    return "(?:" + "|".join(word.replace("_", " ") for word in text.split()) + ")"


def _by_word(words: dict[str, str]) -> dict[str, str]:
    """Key → its words, turned around: each word → its key. An underscore stands for a space inside a phrase."""
    return {word.replace("_", " "): key for key, listed in words.items() for word in listed.split()}


_LONG_FORMS = {
    "i": "I", "im": "I'm", "i'm": "I'm", "i m": "I'm", "i am": "I'm", "ive": "I've", "i've": "I've", "i'd": "I'd",
    "i'll": "I'll", "i've got": "I have", "ive got": "I have", "i have got": "I have", "we've got": "we have",
    "i'm called": "my name is", "im called": "my name is", "i am called": "my name is", "name's": "name is",
    "dont": "don't", "do not": "don't", "doesnt": "doesn't", "w/": "with", "cant": "can't", "cannot": "can't",
    "isnt": "isn't", "wanna": "want to", "gonna": "going to", "u": "you", "ur": "your", "pls": "please",
    "plz": "please", "tmrw": "tomorrow", "fav": "favourite", "fave": "favourite", "favorite": "favourite",
    "favorit": "favourite", "favourit": "favourite", "favrite": "favourite", "bday": "birthday", "b-day": "birthday",
    "birthday's": "birthday is", "alergic": "allergic", "vegitarian": "vegetarian", "vegeterian": "vegetarian",
}  # fmt: skip
_SHORT_FORMS = re.compile(
    rf"(?<![\w'])(?:{'|'.join(sorted(_LONG_FORMS, key=len, reverse=True))})(?![\w'])", re.IGNORECASE
)
#: Somebody else's words without quotes: "he said I live in Rome", "I live in Rome, says Bob".
_REPORTED = re.compile(
    r"\b(?:he|she|they|you|who|everyone|everybody|people|someone|somebody|nobody|mom|mum|dad|doctor|boss|friends?"
    r"|sister|brother|wife|husband|neighbou?r|[A-Z][a-z]+|guy|girl|man|woman|it|ad|sign|bot|book|song"
    r"|horoscope) (?:just |always |once |also )?(?:said|says|say(?! )|asked|asks|wrote|writes|replied|told|tells"
    r"|thinks?|thought|claims?|claimed|believes?|sings?|sang|goes|texted|swears|keeps saying)\b|, (?:said|says) \w+",
)
_OWN_REPORT = re.compile(
    r"\b(?:(?:just )?(?:like|as) I(?:'ve)? (?:already )?(?:said|mentioned|told you)(?: before| earlier)?|(?:I've "
    r"|I )?(?:already |just )?told you(?: before| already| that)*|I(?:'ve)? (?:already )?mentioned(?: that)?"
    r"|I (?:just )?(?:thought|think|figured) (?:you should know|I'd let you know|I should mention"
    r"|I should tell you)(?: that)?|(?:just )?so you know|just so you're aware|you should know(?: that)?"
    r"|for what it's worth|the thing is|fact is|I (?:should|have to|must|want to|wanted to) (?:say|mention"
    r"|tell you|admit|confess|add)(?: that)?|let me (?:introduce myself|tell you(?: about myself| that)?)"
    r"|I'm happy to say|I can tell you(?: that)?|(?:it|this) (?:might|may) be relevant|(?:it|this) (?:might"
    r"|may) help|not sure if (?:it|this|that) (?:matters|helps|is relevant))(?:,| but)?",
    re.IGNORECASE,
)
_AS_A_EN = re.compile(
    r"\bas (an? (?!kid|child|student|teen|boy|girl|baby)[\w -]{2,40}), ?(?=I\b|I'm\b|my\b)", re.IGNORECASE
)
_SEGMENT_EN = re.compile(
    r"\s*[()\[\]|]\s*|\s+[-–—]+\s+|\s*—\s*|\s+(?=but\b|because\b|cuz\b|cause I|since I|so (?:I|my|don't|please"
    r"|no)\b|although\b|though I)|,\s*(?=(?:and |but |so |or |yet |also |plus |because |since |as |then |while "
    r"|though |oh |btw |please |pls )*(?:I|I'm|I've|I'd|my|we|we're|our|you|your|he|she|it|it's|his|her|its|they"
    r"|this|that's|there|please|can|could|would|what|what's|where|how|who|why|when|is|are|am|do|does|did|any|got"
    r"|don't|never|always|call|just call|keep|no|not|right|remember|currently|originally|born|grew up|(?:living"
    r"|live) in|work(?:ing)? (?:as|at|for|in)|based in|from|allergic to|married|both|named|called|so|and|thanks"
    r"|thank|suggest|recommend|help|speak (?:to|in)|answer|reply)\b)|\s+and\s+(?=(?:also |then |now |currently "
    r"|please )*(?:I|I'm|I've|I'd|my|we|he|she|it|it's|his|her|its|they|you|your|that|this|don't|please|never"
    r"|always|call|live in|living in|work (?:as|at|for|in)|working (?:as|at|for|in)|am|have|has|own|drive|speak"
    r"|love|like|hate|enjoy|prefer|can't|want|study|studying|allergic to|from|based in|born|grew up|moved|keep|do"
    r"|what|how|was|got|named|called|would|could|is)\b)",
    re.IGNORECASE,
)  # fmt: skip
#: Where a sentence without commas starts anew; only forms too strong to be part of another clause.
_RUN_ON_EN = re.compile(
    r"(?<=[\w.!)])(?<!you)(?<!\bto)(?<!just)(?<!please)(?<!\bis)(?<!\bare) +(?=(?:I'm (?:allergic|from|a |an |\d"
    r"|vegan|vegetarian|living|based|working)|I (?:live|work|speak|was born|grew up|have an?|prefer) |my (?:name"
    r"|birthday|favourite|timezone|job) |(?:please )?call me |please (?:don't|never|always|answer|keep) ))"
)
_TURN_EN = re.compile(r"\s*(?:but|however|anyway|in reality|in fact|actually|so)\b", re.IGNORECASE)
_OPENING_EN = re.compile(
    r"(?:and|but|so|oh|ah|well|ok|okay|btw|by the way|also|plus|actually|fyi|for the record|for context"
    r"|for your information|for info|yes|yeah|yep|yup|nope|no worries|sure|great|cool|nice"
    r"|thanks?(?: you)?(?: so much| a lot)?|thx|ty|lol|haha+|hehe+|hmm+|um+|uh+|ugh|wow|omg|tbh|to be honest"
    r"|honestly|frankly|personally|basically|literally|then|now|because|cuz|cause|since|as(?= I)|though|although"
    r"|however|anyway|anyways|yo|see|look|listen|you know(?: that)?|know that|that|i mean|like(?= I)|besides"
    r"|unfortunately|sadly|luckily|obviously|fun fact|random fact|quick fact|a bit about me|about me"
    r"|bit about myself|some background|background|context|ps|p\.s|reminder|heads up|just|in fact"
    r"|in case you(?: were)? wonder(?:ing|ed)?|if you(?:'re| are) wondering|in general|generally|as for me"
    r"|same here|nice to meet you|pleased to meet you|good to know|sorry|alright|right|first of all|one more thing"
    r"|another thing|one thing|quick note|correction|update|news|big news|good news|guess what|these days|nowadays"
    r"|currently|at the moment|right now|today|recently|lately|tonight|overall|mostly|usually|in addition"
    r"|apart from that|on top of that|more about me|speaking of which|welp|dude|man|bro|(?:hey|hi|hello|hiya|heya"
    r"|howdy|good (?:morning|evening|afternoon)|greetings)(?: there| all| everyone| everybody| bot| again| remora"
    r"| friend)?|remora|for next time|next time|since last \w+|for (?:\w+ ){1,2}years)(?=[\s,:!.…\-–—]"
    r"|$)[\s,:!.…\-–—]*",
    re.IGNORECASE,
)
#: "Next month I'm visiting …" is read as "I'm visiting … next month".
_DATE_FIRST_EN = re.compile(
    r"^(tomorrow|next \w{3,9}|this weekend|on \w{3,6}day|in \w{1,6} (?:days|weeks|months)|in (?:january|february"
    r"|march|april|may|june|july|august|september|october|november|december)),? (?=(?:I|I'm|we|we're"
    r"|we are)\b)(.{1,300})",
    re.IGNORECASE,
)
_GREETING_EN = re.compile(
    r"(?:hi|hello|hey|hiya|heya|howdy|yo|good (?:morning|evening|afternoon)|greetings|nice to meet you)\b",
    re.IGNORECASE,
)
_QUESTION_EN = re.compile(
    r"(?:what|where|who|whom|whose|when(?! you (?:answer|reply|respond|talk|write|explain))|why|how|which|what's"
    r"|who's|where's|how's|when's|is|are|am|was|were|do|does|did|can|could|would|should|shall|will|has|may|might"
    r"|have (?:you|I|we|they)|isn't|aren't|don't (?:you|I|we)|didn't|doesn't|won't|wouldn't|couldn't|can't (?:you"
    r"|I|we)|any (?:idea|idea|tips|chance|recommendations?|suggestions?)|anything|got any|wanna|want to"
    r"|remember (?:when|what|where|how|who|my|me|I)|know (?:any|a)|ideas|suggestions|recommendations|recommend"
    r"|suggest|or|ever)\b",
    re.IGNORECASE,
)
_POLITE_EN = re.compile(r"(?:can|could|would|will) you (?:please |kindly |just |maybe )*", re.IGNORECASE)
#: Words after which a sentence is no longer about what is so.
_POISON_EN = re.compile(
    r"(?:^|(?<=[\s,]))(?:if(?! you (?:must|need to|have to|want to) know)|unless|whether|as though|what if"
    r"|assum(?:e|ing)|let's say|lets say|say that I|wish|dreamt|dreamed|dream I|dreaming|thinks?(?: that)? I"
    r"|thought|believes?(?: that)? I|claims? (?:I|that|to)|doubt|until|when I|when I'm|once I|as soon as"
    r"|whenever I|every time I|used to|said|says|saying|tells?|heard|no longer|anymore|any more|not true"
    r"|isn't true|the day I|before I|after I|in case|even though I was|would be|someone who|people who|anyone who"
    r"|the one who|somebody who|a person who|girl who|guy who|accus\w+|mistake\w* me|called me|joke|lie|lied|lying"
    r"|in my (?:last|previous|next) life|in another life|in a parallel|like$)\b",
    re.IGNORECASE,
)
_CONDITION_EN = re.compile(
    r"(?<=\w) (?:if|unless|when I|until|once I|before I|after I|whenever I|as soon as|in case|whether)\b",
    re.IGNORECASE,
)
#: Words that make one clause too uncertain.
_DOUBT_EN = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|might|may be|could be|not sure|I guess|I suppose|I think|supposedly"
    r"|allegedly|apparently|kind of like|almost|for a (?:day|week|month|few)|not really|hopefully|sort of"
    r"|basically a|practically|feel like a|honorary|metaphor\w*)\b",
    re.IGNORECASE,
)
_SUBJECT_EN = re.compile(
    r"(?:I|I'm|I've|I'd|my|me|we|we're|our|you|your|you're|he|she|he's|she's|it|it's|they|they're|this|that|these"
    r"|those|there|the|his|her|their|its|who|what|don't|please|call|never|always)\b",
    re.IGNORECASE,
)
#: Clauses that speak of the speaker even when they open the message without "I".
_ALONE_EN = re.compile(
    r"(?:(?:severely |also |super )?allergic to|based in|originally from|born and raised|diagnosed with"
    r"|been (?:vegan|vegetarian|working)|got an? |studying |adopted|bought|moved to|turned \d|living in"
    r"|work(?:ing)? (?:as|at) |(?:not (?:a |really a |much of a )?)?(?:big |huge |massive )?fan of|not into"
    r"|\d\d,? )",
    re.IGNORECASE,
)
_SELF_EN = re.compile(r"(?:I|I'm|I've|we|we're|my name|my birthday)(?![\w'])")

# ------------------------------------------------------------------------------------------- English: readers, rules

#: A whole list is cut before these words; a single value already before the shorter list that follows.
_STOP_EN = (
    r"but|so|because|bc|cuz|cause|since|though|although|while|when|whenever|if|which|who|where|whereas|unless"
    r"|except|even|as (?:well|I|my)|ever since|and (?:I|I'm|I've|my|we|it|he|she|they|you|that|then|so|would|could"
    r"|can|can't|don't|am|have|live|living|work|working|speak|love|like|hate|prefer|enjoy|also|want|come|study"
    r"|grew|moved|is|was|our|never|always|please|just|now|currently|looking)|I|I'm|I've|my"
)
_END_LIST = (
    rf"(?=\s*$|\s*[()\[\]–—:]|,? (?:{_STOP_EN})(?![\w'])"
    r"|, (?:and )?(?:I|I'm|my|please|especially|particularly|mainly|most of all)(?![\w']))"
)
_END_ONE = (
    rf"(?=\s*$|\s*[,()\[\]–—:]|\s+-|\s*/| (?:{_STOP_EN}|and|with|for|at|on|near|from|living|based|working|as|now"
    rf"|right now|currently|rn|these days|at the"
    r" moment|atm|too|btw|by the way|lol|haha|already|again|right|here|by|until|till|please|thanks|tbh|actually"
    r"|originally|born|studying|looking|after|in|this|last|next|together|alone|(?:\d+|an?|one|two|three|four|five"
    r"|six|ten|a few|several|a couple of) (?:year|month|week|day)s?)(?![\w']))"
)
_LIST = r"(?P<v>[^\n]{1,300}?)" + _END_LIST
_ONE = r"(?P<v>[^\n,]{1,80}?)" + _END_ONE

_COUNTRIES_EN = _words(
    "portugal spain france germany italy england scotland wales ireland uk united_kingdom usa us united_states "
    "canada mexico brazil argentina chile peru colombia netherlands belgium luxembourg switzerland austria poland "
    "czechia czech_republic slovakia hungary romania bulgaria greece turkey croatia serbia slovenia ukraine "
    "russia norway sweden denmark finland iceland estonia latvia lithuania china japan south_korea korea taiwan "
    "india pakistan bangladesh thailand vietnam malaysia singapore indonesia philippines australia new_zealand "
    "egypt morocco tunisia nigeria kenya ghana south_africa israel lebanon iran iraq uae california texas florida "
    "oregon washington ontario quebec bavaria catalonia galicia andalusia ohio michigan virginia colorado arizona "
    "georgia massachusetts"
)
_NATIONS_EN = _words(
    "portuguese spanish french german italian english british scottish welsh irish american canadian mexican "
    "brazilian argentinian argentine chilean peruvian colombian venezuelan cuban dutch belgian swiss austrian "
    "polish czech slovak hungarian romanian bulgarian greek turkish croatian serbian bosnian slovenian slovene "
    "ukrainian russian belarusian norwegian swedish danish finnish icelandic estonian latvian lithuanian chinese "
    "japanese korean south_korean taiwanese indian pakistani bangladeshi nepali thai vietnamese malaysian "
    "singaporean indonesian filipino filipina australian new_zealander kiwi egyptian moroccan tunisian algerian "
    "nigerian kenyan ghanaian ethiopian south_african israeli lebanese syrian iranian persian iraqi saudi afghan "
    "georgian armenian catalan basque puerto_rican brit scot spaniard dane swede finn pole turk cypriot maltese "
    "albanian"
)
_LANGUAGES_EN = _words(
    "english spanish french german italian portuguese brazilian_portuguese dutch polish czech slovak hungarian "
    "romanian bulgarian greek turkish croatian serbian slovenian ukrainian russian norwegian swedish danish "
    "finnish icelandic estonian latvian lithuanian mandarin_chinese mandarin cantonese chinese japanese korean "
    "hindi urdu bengali punjabi tamil telugu nepali thai vietnamese malay indonesian tagalog filipino arabic "
    "hebrew persian farsi swahili yoruba igbo amharic afrikaans catalan basque galician irish welsh esperanto "
    "latin hokkien hakka shanghainese sign_language asl georgian armenian albanian"
)
_JOBS_EN = _words(
    "nurse doctor physician surgeon dentist vet veterinarian paramedic pharmacist midwife physiotherapist physio "
    "therapist psychologist psychiatrist caregiver carer teacher professor lecturer tutor librarian principal "
    "engineer developer programmer coder dev devops sysadmin admin administrator architect designer analyst "
    "scientist researcher physicist chemist biologist mathematician statistician economist historian geologist "
    "astronomer postdoc accountant bookkeeper auditor banker trader broker actuary consultant lawyer attorney "
    "solicitor barrister paralegal judge notary manager director executive ceo cto cfo founder entrepreneur "
    "freelancer owner secretary assistant receptionist clerk cashier salesman saleswoman salesperson recruiter "
    "marketer journalist reporter writer author editor copywriter translator interpreter poet blogger "
    "photographer filmmaker videographer animator illustrator artist painter sculptor musician singer composer "
    "pianist guitarist drummer violinist dj actor actress comedian dancer producer chef cook baker barista "
    "bartender waiter waitress butcher farmer gardener florist fisherman carpenter plumber electrician mechanic "
    "welder builder bricklayer roofer technician operator machinist tailor hairdresser barber beautician driver "
    "trucker pilot flight_attendant sailor captain courier postman mailman firefighter policeman policewoman "
    "police_officer officer soldier detective guard security_guard student undergrad undergraduate apprentice "
    "intern trainee cleaner janitor nanny babysitter housewife homemaker stay-at-home_mom stay-at-home_dad "
    "stay-at-home_mum social_worker priest pastor coach trainer instructor personal_trainer optician optometrist "
    "jeweller tester qa scrum_master product_manager project_manager realtor estate_agent agent surveyor planner "
    "logistician retiree pensioner civil_servant politician diplomat beekeeper winemaker brewer sommelier "
    "shopkeeper streamer youtuber contractor handyman radiologist cardiologist anesthesiologist anaesthetist "
    "paediatrician pediatrician dermatologist neurologist gp radiographer nutritionist dietitian "
    "teaching_assistant data_engineer technologist specialist strategist supervisor conductor tattooist locksmith "
    "curator archaeologist"
)
_NOT_JOB_EN = re.compile(
    r"\b(?:terrible|bad|awful|good|great|horrible|decent|amazing|natural|real|true|fake|wannabe|lousy|nervous|slow"
    r"|fast|careful|safe|fan|bit|control|happy|proud|pet|dog|cat|car|secret|kind of|type|huge|better|worse"
    r"|excellent|mean|passable|heavy|hopeless|not|your|own|my|free|early)\b",
    re.IGNORECASE,
)
_FIELDS_EN = _words(
    "marketing finance it sales hr human_resources tech healthcare health_care education logistics insurance "
    "advertising construction hospitality retail real_estate accounting consulting banking engineering publishing "
    "manufacturing cybersecurity customer_service customer_support journalism fashion media law agriculture "
    "research biotech pharma public_relations social_work theatre television film radio aviation telecoms "
    "telecommunications software software_development web_development data_science game_development design "
    "graphic_design catering tourism procurement quality_assurance"
)
_CONDITIONS_EN = (
    r"(?:(?:type (?:1|2|one|two|i|ii) )?diabetes|asthma|adhd|add|autism|asperger'?s|epilepsy|dyslexia|dyscalculia"
    r"|dyspraxia|depression|anxiety|an anxiety disorder|social anxiety|ocd|ptsd|bipolar(?: disorder)?|migraines"
    r"|chronic \w+(?: \w+)?|high blood pressure|hypertension|low blood pressure|arthritis|rheumatoid arthritis"
    r"|celiac(?: disease)?|coeliac(?: disease)?|crohn'?s(?: disease)?|ibs|gerd|acid reflux|insomnia|narcolepsy"
    r"|sleep apn(?:o)?ea|tinnitus|eczema|psoriasis|rosacea|hay ?fever|lupus|fibromyalgia|endometriosis|pcos|cancer"
    r"|anemia|anaemia|hypothyroidism|hyperthyroidism|parkinson'?s|multiple sclerosis|ms|scoliosis|osteoporosis"
    r"|gout|glaucoma|vertigo|a heart condition|a pacemaker|lactose intolerance|gluten intolerance|a bad (?:back"
    r"|knee)|bad knees|hiv|hepatitis [abc]|kidney disease|sciatica|tourette'?s|hearing loss|color ?blindness"
    r"|colour ?blindness)"
)
_AILING_EN = {
    "diabetic": "diabetes", "asthmatic": "asthma", "epileptic": "epilepsy", "dyslexic": "dyslexia",
    "autistic": "autism", "bipolar": "bipolar disorder", "celiac": "celiac disease", "coeliac": "coeliac disease",
    "anemic": "anemia", "anaemic": "anaemia", "arthritic": "arthritis",
}  # fmt: skip
_DIETS_EN = (
    r"(?:vegetarian|vegan|pescatarian|pescetarian|flexitarian|gluten[- ]free|dairy[- ]free|keto|paleo|halal|kosher"
    r"|lacto[- ]vegetarian|low[- ]carb|sugar[- ]free|plant[- ]based|fruitarian|carnivore|mediterranean"
    r"|low[- ]fodmap)"
)
_ANIMALS_EN = _words(
    "dog puppy pup doggo cat kitten kitty rabbit bunny hamster guinea_pig parrot budgie parakeet cockatiel bird "
    "fish goldfish turtle tortoise snake lizard gecko horse pony chicken hen rat mouse ferret hedgehog axolotl "
    "canary duck goat pig chinchilla gerbil iguana golden_retriever retriever labrador lab corgi poodle beagle "
    "husky dachshund chihuahua bulldog pug shepherd terrier spaniel collie greyhound tabby siamese maine_coon "
    "ragdoll donkey alpaca cow sheep spider tarantula frog"
)
_THINGS_EN = _words(
    "car bike bicycle motorbike motorcycle scooter e-bike house flat apartment condo cabin cottage boat sailboat "
    "van campervan camper truck pickup laptop computer pc desktop macbook mac imac ipad iphone phone smartphone "
    "android tablet kindle guitar piano keyboard violin cello drum_kit drums ukulele flute saxophone trumpet "
    "camera drone telescope printer 3d_printer server nas raspberry_pi ps5 ps4 playstation xbox switch "
    "nintendo_switch steam_deck tv television sewing_machine garden greenhouse allotment tesla bmw volvo toyota "
    "honda ford vw volkswagen audi fiat kayak canoe surfboard snowboard skateboard record_player turntable synth "
    "synthesizer monitor espresso_machine coffee_machine air_fryer bakery shop cafe restaurant company farm "
    "vineyard bookshop store watch"
)
_RELATIONS_EN = _by_word(
    {
        "wife": "wife", "husband": "husband hubby", "partner": "partner spouse",
        "fiance": "fiance fiancé fiancee fiancée", "girlfriend": "girlfriend gf", "boyfriend": "boyfriend bf",
        "mother": "mother mom mum mama", "father": "father dad papa", "sister": "sister sis sisters",
        "brother": "brother bro brothers", "son": "son sons", "daughter": "daughter daughters",
        "child": "kid kids child children", "grandmother": "grandmother grandma granny nan",
        "grandfather": "grandfather grandpa grandad granddad", "grandson": "grandson",
        "granddaughter": "granddaughter", "aunt": "aunt auntie", "uncle": "uncle", "cousin": "cousin",
        "nephew": "nephew", "niece": "niece", "mother-in-law": "mother-in-law", "father-in-law": "father-in-law",
        "sister-in-law": "sister-in-law", "brother-in-law": "brother-in-law", "stepson": "stepson",
        "stepdaughter": "stepdaughter", "stepfather": "stepfather", "stepmother": "stepmother",
        "friend": "friend friends best_friend bestie bff", "roommate": "roommate flatmate housemate",
        "neighbour": "neighbour neighbor", "boss": "boss", "manager": "manager", "supervisor": "supervisor",
        "colleague": "colleague coworker co-worker", "teacher": "teacher", "doctor": "doctor",
        "therapist": "therapist", "dentist": "dentist", "mentor": "mentor", "twin": "twin",
    }
)  # fmt: skip
_RELATION_EN = "(?:" + "|".join(sorted(map(re.escape, _RELATIONS_EN), key=len, reverse=True)) + ")"
_RELATION_MOD_EN = (
    r"(?:(?:older|elder|big|little|small|younger|youngest|oldest|eldest|baby|twin|half|step|late|best|new|only"
    r"|middle|dear|lovely|beloved|\d{1,2}[- ]year[- ]old)[- ])?"
)
#: Relatives of whom more than a name is kept.
_KIN = frozenset(
    [
        "girlfriend",
        "boyfriend",
        "sister",
        "brother",
        "son",
        "daughter",
        "child",
        "grandmother",
        "grandfather",
        "grandson",
        "granddaughter",
    ]
)
_NAME_EN = r"(?-i:[A-ZÀ-Þ])[\w'\-]{1,24}"
_NAMES_EN = r"(?-i:[A-ZÀ-Þ])[\w'.\-]{0,24}(?: (?:(?-i:[A-ZÀ-Þ])[\w'.\-]{0,24}|de|da|van|von|del|la|bin|al))*"
_NOT_NAMES = re.compile(
    r"(?:i|i'm|i've|is|has|was|lives?|and|or|the|a|an|my|me|we|he|she|they|it|you|ok|okay|not|no|yes|yeah|so|in|on"
    r"|at|from|sorry|here|there|back|home|sure|done|good|fine|great|well|sick|tired|bored|happy|sad|angry|mad|late"
    r"|early|busy|free|ready|hungry|thirsty|sleepy|drunk|cold|hot|ill|alive|dead|single|married|divorced|engaged"
    r"|pregnant|gay|straight|bi|trans|male|female|old|young|tall|short|fat|thin|new|lost|stuck|confused|stressed"
    r"|anxious|nervous|scared|afraid|lonely|alone|interested|curious|excited|glad|proud|lazy|broke|rich|poor|out"
    r"|off|up|down|away|just|also|really|very|super|pretty|quite|still|always|never|now|today|tomorrow|going"
    r"|coming|looking|trying|working|having|doing|feeling|thinking|wondering|getting|making|writing|asking"
    r"|learning|living|studying|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march"
    r"|april|june|july|august|september|october|november|december|christian|catholic|muslim|jewish|buddhist|hindu"
    r"|atheist|ceo|cto|cfo|vp|hr|it|ai|bot|human|team|mom|mum|dad|father|mother|sir|dude|bro|man|woman|guy|girl"
    r"|boy|kid|adult|student|vegan|vegetarian|diabetic|allergic|deaf|blind|introvert|extrovert|introverted"
    r"|extroverted|shy|weird|crazy|insane|serious|kidding|joking|right|wrong|true|like|all|too|exhausted"
    r"|overwhelmed|depressed|worried|surprised|shocked|impressed|confident|certain|aware|able|unable|available"
    r"|welcome|grateful|thankful|american|using|called|named|gonna|about|done|over|under|into|for|with|without"
    r"|between|around|near|once|it's|that|this|what|who|why|how|when|where|someone|nobody|something|nothing"
    r"|everything|everyone|better|worse|best|obsessed|retired|unemployed|employed|fluent|native|based|born|raised"
    r"|originally|currently|half|lactose|color|colour|batman|superman|spiderman|groot|spartacus|ishmael|god|jesus"
    r"|santa|asthmatic|dyslexic|autistic|epileptic|left-handed|right-handed|hungover|sober|clueless|speechless"
    r"|jealous|upset|annoyed|frustrated|disappointed|relaxed|awake|asleep|online|offline)",
    re.IGNORECASE,
)
_ARTICLE_EN = re.compile(r"^(?:an?|the|my|our|some)\s+", re.IGNORECASE)
_TAIL_EN = re.compile(
    r"(?:[\s,]+(?:at all|rn|too|as well|also|now|btw|by the way|lol|haha\w*|tbh|please|thanks|thank you|thx"
    r"|already|actually|though|anyway|you know|so much|a lot|very much|the most|right now|currently|at the moment"
    r"|these days|nowadays|more than anything|and all|obviously|ok|okay|really|again|xd|:d|lmao|haha|atm|fyi"
    r"|everyone|all|mate|man|bro|originally|instead|or so|most of all|by the way|etc|and so on|and stuff"
    r"|or something|in general|especially|to be honest|of course|cheers|i guess|lately|recently|everybody|there"
    r"|here|yay|all the time|ever|for sure|for now|right|hehe))+$",
    re.IGNORECASE,
)
_ADDRESSED_EN = re.compile(
    r"\b(?:you|your|yours|u|this|that|these|those|here|it|him|her|them|he|she|they|myself|me|us|being here)\b",
    re.IGNORECASE,
)
_EMPTY_EN = re.compile(
    r"(?:how|what|when|where|why|who|if|to (?:know|think|believe|hear|see|say|ask|thank)|the (?:idea|way|fact"
    r"|sound|look|one|ones|new|answer|result|design|part|picture|last|first|second|thought|concept|feeling)"
    r"|everything|nothing|anything|something|everyone|all|both|neither|none|my|our|not|no|any|more|less|better"
    r"|best|nice|good|so|too|very|being alive|everybody|life|people|things|stuff|men|women|girls|boys)\b",
    re.IGNORECASE,
)
_PAIRS_EN = re.compile(
    r"\b(rock|mac|fish|gin|salt|bread|black|peanut butter|drum|dungeons|rhythm|arts|cheese|research|bed|friends"
    r"|pride|war|crime|bosnia|trinidad|science|r|d|sweet|hot|pen|cookies|ham|eggs|country|food|hide|ups"
    r"|simon) (?:and|&) (roll|cheese|chips|tonic|vinegar|butter|white|jelly|bass|dragons|blues|crafts|onion"
    r"|development|breakfast|family|prejudice|peace|punishment|herzegovina|tobago|fiction|b|d|sour|spicy|paper"
    r"|cream|eggs|bacon|western|wine|seek|downs|garfunkel)\b",
    re.IGNORECASE,
)


def _trim_en(text: str) -> str:
    """A value without closing particles, emoji, punctuation and articles."""
    text = re.sub(r"\s+", " ", _TAIL_EN.sub("", _strip_signs(text)))
    return _ARTICLE_EN.sub("", _strip_signs(text), count=1)


def _strip_signs(text: str) -> str:
    start, end = 0, len(text)
    while start < end and not (text[start].isalnum() or text[start] in "+#@$€£-" + _HOLE):
        start += 1
    while end > start and not (text[end - 1].isalnum() or text[end - 1] in "+#%)" + _HOLE):
        end -= 1
    return text[start:end]


def _listed_en(text: str) -> list[str]:
    text = _PAIRS_EN.sub(r"\1\0\2", text)
    parts = re.split(r"\s*,\s*(?:and\s+|or\s+|also\s+)?|\s+(?:and(?: also)?|or|&|as well as|plus)\s+|\s+\+\s+", text)
    parts = [part.replace("\0", " and ") for part in parts]
    return [trimmed for part in parts if (trimmed := _trim_en(part))]


def _single(key: str, *, words: int = 6, refuse: str = r"(?!)") -> _Read:
    """Group v as one value of at most `words` words that does not match `refuse`."""
    refused = re.compile(refuse, re.IGNORECASE)

    def read(groups: dict[str, str], _today: date) -> list[_Pair]:
        value = _trim_en(groups["v"])
        return [] if refused.search(value) or len(value.split()) > words else [_Pair(key, value)]

    return read


def _several(key: str, *, words: int = 8) -> _Read:
    """Group v as a list; an item that points at the talk itself ("this", "you") spoils the list."""

    def read(groups: dict[str, str], _today: date) -> list[_Pair]:
        items = _listed_en(groups["v"])
        if _EMPTY_EN.match(groups["v"].strip()) or any(_ADDRESSED_EN.search(item) for item in items):
            return []
        return [_Pair(key, item) for item in items if len(item.split()) <= words and not _EMPTY_EN.match(item)]

    return read


def _places_en(key: str) -> _Read:
    def read(groups: dict[str, str], _today: date) -> list[_Pair]:
        raw = groups["v"].strip()
        value = _trim_en(raw)
        vague = re.match(r"(?:an?|my|your|our|his|her|their|this|that|some|one)\b", raw, re.IGNORECASE)
        if vague and not re.match(r"a (?:\w+ )?(?:\w+ )?(?:village|town|city|suburb|island|farm) ", raw, re.IGNORECASE):
            return []
        if _NOT_PLACES_EN.search(value) or len(value.split()) > 6 or value[0:1].isdigit():
            return []
        return [_Pair(key, value)]

    return read


_NOT_PLACES_EN = re.compile(
    r"\b(?:is|are|was|were|has|have|had|it|you|me|not|fear|hope|peace|denial|pain|hell|poverty|moment|past|present"
    r"|future|middle|clouds|sky|dark|shadows?|matrix|ocean|dream|fantasy|bubble|harmony|luxury|dorms?|house"
    r"|apartment|flat|hotel|work|school|scratch|home|where|there|here|constant|exile|sin|same|mars|moon|space"
    r"|heaven|now|today|time|world|way|bed|office|train|airport|another|outer|shire|hogwarts|wonderland|neverland"
    r"|narnia|yellow submarine|perfect|over|everywhere|nowhere|anywhere|somewhere|planet|company|team|department"
    r"|site|internet|expensive|great|harvest)\b",
    re.IGNORECASE,
)


def _job_en(groups: dict[str, str], _today: date) -> Iterator[_Pair]:
    job = _trim_en(groups["v"])
    if not _NOT_JOB_EN.search(job) and len(job.split()) <= 6:
        yield _Pair("occupation", job)
        employer = groups.get("e")
        if employer and not re.match(
            r"(?:an?|the|my|our|home|night|heart|work|least|large|hire|day|fun|life|now|over|some|one|\d)\b",
            employer,
            re.IGNORECASE,
        ):
            yield _Pair("employer", _trim_en(employer))
        school = groups.get("s")
        if school:
            yield _Pair("studies", _trim_en(school))


def _names_en(text: str) -> list[str]:
    names = [_strip_signs(name) for name in re.split(r"\s*,\s*|\s+(?:and|&)\s+", text)]
    return [name for name in names if name and not _NOT_NAMES.fullmatch(name) and len(name.split()) <= 4]


def _name_en(key: str) -> _Read:
    def read(groups: dict[str, str], _today: date) -> list[_Pair]:
        value = _strip_signs(_TAIL_EN.sub("", groups["v"]))
        first = value.split(" ")[0]
        taken = _NOT_NAMES.fullmatch(first) or re.fullmatch(
            f"{_NATIONS_EN}|{_LANGUAGES_EN}|{_JOBS_EN}|{_DIETS_EN}", value, re.IGNORECASE
        )
        if taken or len(value.split()) > 4 or value.isdigit() or re.search(r"(?-i:^[a-z]\w*(?:ing|ed)$)", value):
            return []
        return [_Pair(key, value)]

    return read


def _age(groups: dict[str, str], _today: date) -> list[_Pair]:
    number = _NUMBER_WORDS_EN.get(groups["v"].lower().replace("-", " "), groups["v"])
    return [_Pair("age", str(int(number)))] if number.isdecimal() and 3 <= int(number) <= 119 else []


_TENS = dict(
    zip(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], range(20, 100, 10), strict=True)
)
_ONES = dict(
    zip(
        [
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ],
        range(1, 20),
        strict=True,
    )
)
_NUMBER_WORDS_EN = {
    word: str(number)
    for word, number in (
        _ONES
        | _TENS
        | {f"{ten} {one}": tens + ones for ten, tens in _TENS.items() for one, ones in _ONES.items() if ones < 10}
    ).items()
}
_AGE_EN = (
    r"(?P<v>\d{1,3}|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[- ](?:one|two|three|four|five|six"
    r"|seven|eight|nine))?|(?:thir|four|fif|six|seven|eigh|nine)teen)"
)
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAY_EN = (
    r"(?P<v>(?:the )?\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:[a-z]{3,9})(?:,? \d{4})?"
    r"|[a-z]{3,9}\.? (?:the )?\d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?|\d{4}-\d{1,2}-\d{1,2}"
    r"|\d{1,2}[./]\d{1,2}(?:[./]\d{2,4})?|today|tomorrow)(?!\w)"
)


def _birthday_en(groups: dict[str, str], today: date) -> list[_Pair]:
    said = groups["v"].strip()
    relative = next(iter(mentions(said, today)), None)
    if relative:
        return [_Pair("birthday", f"{_MONTHS[relative.first.month - 1].title()} {relative.first.day}")]
    word = re.search(r"[a-z]{3,9}", re.sub(r"\d+(?:st|nd|rd|th)|\bthe\b|\bof\b", "", said.lower()))
    numbers = [int(number) for number in re.findall(r"\d+", said)]
    if word:
        month = next(
            (
                i
                for i, name in enumerate(_MONTHS, 1)
                if name.startswith(word.group()[:3]) and word.group() in {name, name[:3], name[:4]}
            ),
            0,
        )
        if not month or not 1 <= numbers[0] <= 31:
            return []
        if len(numbers) == 2:
            return [_Pair("birthday", f"{numbers[1]:04}-{month:02}-{numbers[0]:02}")]
        return [_Pair("birthday", f"{_MONTHS[month - 1].title()} {numbers[0]}")]
    if re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", said):
        return [_Pair("birthday", "{:04}-{:02}-{:02}".format(*numbers))]
    return [_Pair("birthday", said)]  # "3/4" is March in one country and April in the next


def _speaks(key: str) -> _Read:
    def read(groups: dict[str, str], _today: date) -> list[_Pair]:
        # A language nobody listed is believed beside one that is: "Twi and English".
        found = re.findall(rf"\b{_LANGUAGES_EN}\b|\b(?-i:[A-Z][a-z]+)\b", groups["v"], re.IGNORECASE)
        return (
            [_Pair(key, language) for language in found] if re.search(_LANGUAGES_EN, groups["v"], re.IGNORECASE) else []
        )

    return read


def _relative_en(groups: dict[str, str], _today: date) -> list[_Pair]:
    """My sister Ana / my sister is called Ana / I have a sister called Ana."""
    key = _RELATIONS_EN[groups["r"].lower()]
    return [_Pair(key, name) for name in _names_en(groups["v"])]


def _relative_is_en(groups: dict[str, str], _today: date) -> list[_Pair]:
    key = _RELATIONS_EN[groups["r"].lower()]
    value = _trim_en(re.sub(r"^is (?!from )", "", groups["v"]))
    if _NOT_KIN_EN.search(value) or len(value.split()) > 7:
        return []
    return [_Pair(key, value)]


def _kin_does_en(groups: dict[str, str], today: date) -> list[_Pair]:
    return _relative_is_en(groups, today) if _RELATIONS_EN[groups["r"].lower()] in _KIN else []


_NOT_KIN_EN = re.compile(
    r"\b(?:bit|lot|idiot|jerk|pain|saint|angel|star|hero|mess|nightmare|asshole|dick|fan|little|problem|you|good"
    r"|great|bad|terrible|big|huge|big|person|man|woman|guy|girl|boy|liar|joke|genius|legend|monster|witch|morning"
    r"|better|delight|darling|sweetheart)\b",
    re.IGNORECASE,
)


def _has_relative_en(groups: dict[str, str], _today: date) -> list[_Pair]:
    return [_Pair(_RELATIONS_EN[groups["r"].lower()], "", unnamed=True)]


def _pet_en(groups: dict[str, str], _today: date) -> list[_Pair]:
    animal = f"{groups.get('m', '')}{groups['a']}".lower().strip()
    if re.search(r"\b(?:hot|chicken soup|dead)\b", animal):
        return []
    names = _names_en(groups.get("v") or "")
    if names:
        animal = _ANIMAL_PLURALS_EN.get(animal, animal)
        singular = animal if len(names) == 1 or not animal.endswith("s") else animal[:-1]
        return [_Pair("pet", f"{singular} {name}") for name in names]
    count = groups.get("n") or ""
    return [
        _Pair(
            "pet",
            f"{count} {animal}" if count.lower() not in {"", "a", "an", "my", "our", "some", "the"} else animal,
            unnamed=True,
        )
    ]


_ANIMAL_PLURALS_EN = {
    "puppies": "puppy",
    "bunnies": "bunny",
    "kitties": "kitty",
    "mice": "mouse",
    "ponies": "pony",
}


def _owns_en(groups: dict[str, str], _today: date) -> list[_Pair]:
    value = _trim_en(groups["v"])
    bad = re.search(
        r"\b(?:problem|question|issue|trouble|idea|dream|accident|loan|appointment|key|crash|insurance|service"
        r"|repair|rental|rented|you|mistakes?|reservation|time|case)\b",
        value,
        re.I,
    )
    return [] if bad or len(value.split()) > 7 else [_Pair("owns", value)]


def _favourite_en(groups: dict[str, str], _today: date) -> list[_Pair]:
    thing = re.sub(r"^(?:all[- ]time|absolute|personal) ", "", groups["k"].lower().strip())
    plural = groups.get("be", "is") == "are"
    if plural and thing.endswith("s") and not thing.endswith("ss"):
        thing = f"{thing[:-3]}y" if thing.endswith("ies") and thing != "movies" else thing[:-1]
    if len(thing.split()) > 3 or re.search(r"\b(?:thing|part|one|person|of|to|about|in|way|ever|time)\b", thing):
        return []
    value = _trim_en(groups["v"])
    if (
        _ADDRESSED_EN.search(value)
        or _EMPTY_EN.match(value)
        or len(value.split()) > 9
        or re.search(r"\b(?:was|not|changed|when)\b", value)
    ):
        return []
    return [_Pair(f"favourite-{normalise_key(thing)}", value)]


def _goal_en(groups: dict[str, str], today: date) -> list[_Pair]:
    value = _trim_en(re.sub(r"^to ", "", groups["v"]))
    if re.search(r"\b(?:you|your|it|him|her|them)\b", value, re.IGNORECASE) or not 2 <= len(value.split()) <= 14:
        return []
    return [_Pair("goal", anchor(value, today, ahead=True))]


def _plan_en(groups: dict[str, str], today: date) -> list[_Pair]:
    """A plan needs a day that is still to come; tonight is not worth keeping. Group g is a "going to"."""
    value = _trim_en(groups["v"])
    if "g" in groups and (value[:1].isupper() or _ARTICLE_EN.match(groups["v"])):
        value = f"going to {groups['v'].strip()}"  # somewhere, and not merely going to do something
    dates = [mention for mention in mentions(value, today, ahead=True) if mention.last > today]
    dated = dates or re.search(
        r"\b(?:in|on|at) (?:(?:early|mid|late) )?(?:january|february|march|april|may|june|july|august|september"
        r"|october|november|december|spring|summer|autumn|the fall|winter|20\d\d)\b|\b(?:next|this) (?:spring"
        r"|summer|autumn|fall|winter)\b|\bfor christmas\b",
        value,
        re.I,
    )
    if not dated or len(value.split()) > 20 or len(value.split()) < 2:
        return []
    return [_Pair("plan", anchor(value, today, ahead=True))]


def _answers_en(groups: dict[str, str], today: date) -> Iterable[_Pair]:
    """A taste in answers is a standing request; any other taste is a like."""
    value = _trim_en(groups["v"])
    if re.search(
        r"\b(?:answers?|repl(?:y|ies)|responses?|explanations?|messages|bullet points|units|metric|celsius)\b",
        value,
        re.IGNORECASE,
    ):
        return [_Pair("instruction", value)]
    return _several("likes")(groups, today)


_ADV = (
    r"(?:(?:also|really|just|do|actually|totally|absolutely|genuinely|always|still|honestly|truly|very much"
    r"|especially|personally|mostly|usually|currently|now|already|quite|kinda|particularly|sometimes|simply|only"
    r"|definitely|secretly|both|all|recently|so|fully|currently|deeply|especially|basically) ){0,3}"
)
_BE_EN = rf"(?:I'm|we're) {_ADV}"
_IN_EN = rf"(?P<v>[^\n,]{{2,60}}?(?:, ?(?:{_COUNTRIES_EN}|(?-i:[A-Z]{{2}})|(?-i:[A-Z])\w+(?=$)))?)" + _END_ONE
_ORG_EN = r"(?P<e>[^\n,]{2,50}?)" + _END_ONE


def _employer_en(groups: dict[str, str], _today: date) -> list[_Pair]:
    value = _trim_en(re.sub(r".* (?:called|named) ", "", groups["e"]))
    if re.match(
        r"(?:home|night|myself|free|fun|money|least|all|him|her|them|you|it|this|that|my|his|their|your|day"
        r"|weekends?|hours?|years?|\d|minimum|peanuts|the moment|work|odd|a living|long|several|many|two|three"
        r"|over|almost|some|living|good|ages)\b",
        value,
        re.IGNORECASE,
    ):
        return []
    return [_Pair("employer", value)] if len(value.split()) <= 6 else []


def _studies_en(groups: dict[str, str], _today: date) -> list[_Pair]:
    subjects = [item for item in _listed_en(groups["v"]) if len(item.split()) <= 4 and not _ADDRESSED_EN.search(item)]
    school = groups.get("s")
    return [_Pair("studies", value) for value in (*subjects, *([_trim_en(school)] if school and subjects else []))]


_FOODS_EN = (
    r"(?:red |any |processed )?(?:meat|pork|beef|fish|seafood|shellfish|dairy|gluten|eggs?|sugar|lamb|chicken|nuts"
    r"|wheat|bread|carbs|animal products|mushrooms|cheese|onions?|garlic|soy|fast food|junk food)"
)


def _no_food_en(groups: dict[str, str], _today: date) -> list[_Pair]:
    items = _listed_en(groups["v"])
    return [_Pair("diet", f"no {item}") for item in items if re.fullmatch(_FOODS_EN, item, re.IGNORECASE)]


# fmt: off
_RULES_EN: tuple[_Rule, ...] = (
    # who they are
    _rule(rf"my (?:(?:first|full|real|given) )?name is {_ADV}(?!not\b|on\b|in\b|long\b"
          rf"|hard\b)(?P<v>[^\n,]{{1,50}}?){_END_ONE}", _name_en("name")),
    _rule(rf"(?:the )?name is (?P<v>{_NAMES_EN}){_END_ONE}", _name_en("name")),
    _rule(rf"(?P<v>{_NAME_EN}) here$", _name_en("name")),
    _rule(r"(?:(?:you|u) can |feel free to |just |please )*call me (?:just |only )?(?P<v>(?!sometime|soon|when|if"
          r"|later|back|tomorrow|at|on|a |an |maybe|crazy|old|asap|in |today|tonight|after|before|anytime|by"
          r"|whatever|stupid|out|names|again|your|every|old-fashioned)[^\n,]{1,30}?)" + _END_ONE, _name_en("called")),
    _rule(r"(?:everyone|everybody|people|(?:most of )?my friends|friends|they|most people|my family|folks) (?:all "
          r"|just |usually |mostly |always )?calls? me (?P<v>[^\n,]{1,30}?)" + _END_ONE,
          _name_en("called")),
    _rule(r"(?:I go by|my nickname is|I (?:prefer|like) (?:to be|being) called|I'm known as|I'd (?:prefer"
          r"|like) to be called|I'd rather be called|I usually go by) (?:the name )?(?P<v>[^\n,]{1,30}?)" + _END_ONE,
          _name_en("called")),
    _rule(rf"{_BE_EN}an? {_AGE_EN}[- ]?(?:years?[- ]old|yrs?[- ]old|y/?o)(?: (?:man|woman|guy|girl|boy|male|female"
          rf"|mom|dad)\b)?", _age),
    _rule(rf"{_BE_EN}(?:about |exactly )?{_AGE_EN}(?: ?(?:years? old|yrs? old|years? of age|y/?o|yrs?|years? young"
          rf"|f|m))(?![\w'])", _age),
    _rule(rf"{_BE_EN}{_AGE_EN}(?=\s*$|\s*,|\s*\(| and | but | from | now| btw| live | living |, | this year)", _age),
    _rule(rf"I (?:just |recently |have just )?turned {_AGE_EN}(?!\w)", _age),
    _rule(rf"my age is {_AGE_EN}(?!\w)", _age),
    _rule(rf"(?:my birthday (?:is|falls)|I was born|it's my birthday|I celebrate my birthday|my date of birth is"
          rf"|my dob is|my birth date is|born|I'm born)(?: on)?(?: the)? {_DAY_EN}",
          _birthday_en),
    _rule(rf"(?:my )?birthday ?[:=] ?{_DAY_EN}", _birthday_en),
    _rule(rf"{_DAY_EN} is my birthday", _birthday_en),
    _rule(rf"{_BE_EN}(?:an? )?(?P<v>(?:half[- ])?(?:{_NATIONS_EN})(?:[- ](?:american|canadian|british"
          rf"|australian))?)(?: (?:citizen|guy|girl|woman|man|national|expat|immigrant|person|dude|lady"
          rf"|by birth))?(?=\s*$|\s*[,()–—]| and | but | from | living | based | by | so | who | btw| too| in "
          rf"| working)", _single("nationality")),
    _rule(rf"my nationality is (?P<v>{_NATIONS_EN})", _single("nationality")),
    _rule(rf"I (?:have|hold) (?:an? )?(?P<v>{_NATIONS_EN}) (?:citizenship|nationality|passport)",
          _single("nationality")),
    _rule(r"(?:my (?:native|first|mother) (?:language|tongue) is|my mother[- ]tongue is) (?P<v>[^\n]{2,60})",
          _speaks("native-language")),
    _rule(rf"{_BE_EN}an? native (?P<v>{_LANGUAGES_EN}) speaker", _speaks("native-language")),
    _rule(rf"(?P<v>{_LANGUAGES_EN}) is my (?:native|first|mother)[- ](?:language|tongue)",
          _speaks("native-language")),
    _rule(rf"I (?:natively speak|speak native) (?P<v>{_LANGUAGES_EN})|I speak (?P<w>{_LANGUAGES_EN}) natively",
          lambda g, _: [_Pair("native-language", g.get("v") or g["w"])]),
    _rule(rf"(?:I|we) {_ADV}(?:can )?{_ADV}(?:speak|know) (?:(?:fluent|some|a little|a bit of|a little bit of"
          rf"|basic|decent|good|broken|mainly|mostly|only) )*(?P<v>(?:(?-i:[A-Z])\w+(?:, "
          rf"| and )){{0,3}}(?:{_LANGUAGES_EN})\b[^\n]{{0,80}}?){_END_LIST}", _speaks("speaks")),
    _rule(rf"{_BE_EN}(?:fluent in|bilingual in|bilingual[,:]?|conversational in|trilingual in"
          rf"|trilingual[,:]?) (?P<v>[^\n]{{2,80}}?){_END_LIST}", _speaks("speaks")),
    _rule(r"my (?:time ?zone|tz) is (?P<v>[^\n]{2,40}?)(?=\s*$|,| so | but | and | btw|\s*\()",
          _single("timezone", words=4)),
    _rule(rf"{_BE_EN}(?:in|on) (?:the )?(?P<v>(?:(?-i:[A-Z]{{2,5}}|utc|gmt|cet|est|pst|cest|jst"
          rf"|ist)(?: ?[+-]\d{{1,2}}(?::\d\d)?)?|(?:us )?(?:pacific|eastern|central|mountain|european"
          rf"|central european)(?: standard| daylight)?)(?: time(?! ?zone))?)(?: time ?zone|(?<=time)|(?<=\d)"
          rf"|(?<=CET)|(?<=EST)|(?<=PST)|(?<=JST)|(?<=UTC)|(?<=GMT)|(?<=IST)|(?<=cet)|(?<=est)|(?<=pst)|(?<=utc)"
          rf"|(?<=gmt))(?!\w)", _single("timezone")),
    # where
    _rule(rf"(?:I|we) {_ADV}(?:live|reside|stay permanently) {_ADV}(?:with [\w' ]{{2,30}}? |alone "
          rf"|together )?(?:in|near|outside) (?:(?:the city of|downtown|central) )?{_IN_EN}",
          _places_en("home")),
    _rule(rf"(?:{_BE_EN}|I've been |we've been )(?:living|residing|based|settled) {_ADV}(?:in|near|out of) {_IN_EN}",
          _places_en("home")),
    _rule(r"(?:I've|we've) lived in (?P<v>[^\n,]{2,60}?)(?= (?:for|since|all my life|my whole life|my entire life"
          r"|forever))", _places_en("home")),
    _rule(rf"(?:I|we|I've|we've) (?:{_ADV}|have |finally )(?:moved|relocated) (?:(?:back|over|down|up"
          rf"|here) )?to {_IN_EN}", _places_en("home")),
    _rule(rf"(?:my home is|home is|my home city is|my city is|my current city is"
          rf"|I call) (?:in )?(?!where\b){_IN_EN}", _places_en("home")),
    _rule(rf"{_BE_EN}(?:a |an )?(?:{_NATIONS_EN} )?(?:expat|person|resident) (?:living )?(?:in|of) {_IN_EN}",
          _places_en("home")),
    _rule(rf"(?:{_BE_EN}|I )(?:come |originally |originally come |actually |hail |(?:am )?(?:born and raised"
          rf"|originally) )?from (?:originally )?{_IN_EN}", _places_en("hometown")),
    _rule(rf"(?:I|I was|I'm|we) (?:grew up|born and raised|raised|was raised|was born and raised"
          rf"|was born and grew up|was brought up|brought up|was born) (?:in|near|around) {_IN_EN}",
          _places_en("hometown")),
    _rule(rf"my home ?town is {_IN_EN}", _places_en("hometown")),
    # health
    _rule(rf"(?:{_BE_EN}|I )(?:(?:severely|deathly|super|very|highly|mildly|terribly|slightly|badly|extremely"
          rf"|a bit|also|insanely|violently|hella) ){{0,2}}allergic to {_LIST}",
          _several("allergy")),
    _rule(rf"(?:I|we) {_ADV}have (?:an? )?{_ADV}(?:(?:severe|bad|serious|mild|terrible|strong|slight"
          rf"|life-threatening|nasty) )?allerg(?:y|ies) to {_LIST}", _several("allergy")),
    _rule(r"I have (?:an? )?(?:(?:severe|bad|serious|mild|terrible|strong|slight|nasty) )?(?P<v>(?!allerg|seasonal"
          r"|food )(?:(?!and\b|an?\b)[\w-]+ ?){1,3}?) allerg(?:y|ies)\b",
          _several("allergy")),
    _rule(r"my (?:food )?allerg(?:y is|ies are|ies include|ies:|y:) (?:to )?" + _LIST, _several("allergy")),
    _rule(r"(?P<v>[\w ]{2,30}) (?:gives? me hives|makes? my throat (?:close|swell))",
          _several("allergy")),
    _rule(rf"(?:{_BE_EN}|I )(?:(?:been|went|turned|become|became|gone|going|strictly|strict|an?|on|follow"
          rf"|following|eat|only eat|keep|mostly|mainly|eating|lifelong|basically|the"
          rf"|doing) ){{0,4}}(?P<v>{_DIETS_EN})(?: (?:diet|food|only))?(?![\w-])(?! (?:restaurants?|recipes?"
          rf"|curious|options?|cheese|burgers?|cuisine|meals?|dish|when|cookbook|place|and proud of you))",
          _single("diet")),
    _rule(rf"I've been (?:an? |on an? |on the |eating )?(?P<v>{_DIETS_EN})\b", _single("diet")),
    _rule(rf"my diet is (?:mostly |strictly )?(?P<v>{_DIETS_EN})", _single("diet")),
    _rule(r"I (?:really |also |just )?(?:don't|never|can't|do not) eat (?P<v>[^\n]{2,80}?)" + _END_LIST, _no_food_en),
    _rule(rf"(?:I|we) {_ADV}(?:have|suffer from|live with|struggle with|was diagnosed with|were diagnosed with"
          rf"|got diagnosed with|deal with|'ve been diagnosed with) (?:(?:a )?(?:mild|severe|bad|really bad"
          rf"|terrible|very bad|pretty bad|occasional|frequent) )?(?P<v>{_CONDITIONS_EN})(?=\s*$|\s*[,()]| and "
          rf"| but | so |,| since | which | for | btw| too)(?: and (?P<w>{_CONDITIONS_EN}))?",
          lambda m, _: [_Pair("condition", _trim_en(v)) for v in (m["v"], m.get("w", "")) if v]),
    _rule(r"(?:I|I've|I'm) (?:just |recently |was |got |been |been recently )*(?:diagnosed with|suffering from) "
          + _ONE,
          _single("condition", words=5)),
    _rule(rf"{_BE_EN}(?:a )?(?:type (?:1|2|one|two) )?(?P<v>{'|'.join(_AILING_EN)})(?=\s*$|\s*[,()]| and | but "
          rf"| so | since | I )",
          lambda m, _: [_Pair("condition", _AILING_EN[m["v"].lower()])]),
    _rule(rf"{_BE_EN}(?P<v>lactose intolerant|gluten intolerant|colou?r[- ]?blind|deaf|legally blind"
          rf"|visually impaired|hard of hearing|(?:a )?wheelchair user|in a wheelchair|short-?sighted"
          rf"|near-?sighted)(?=\s*$|\s*[,()]| and | but | so | in )",
          _single("condition")),
    # work
    _rule(rf"(?:I|I've) {_ADV}(?:(?:been )?work(?:ing)?|worked) {_ADV}(?:(?!for\b|at\b"
          rf"|in\b)[\w-]+ ){{0,3}}?as (?:an? |the )?(?P<v>[^\n,]{{2,60}}?)(?: (?:at|for|with) {_ORG_EN}|{_END_ONE})",
          _job_en),
    _rule(rf"{_BE_EN}(?:working|employed|training) as (?:an? |the )?(?P<v>[^\n,]{{2,60}}?)(?: (?:at|for"
          rf"|with) {_ORG_EN}|{_END_ONE})", _job_en),
    _rule(rf"{_BE_EN}(?:an? |the |(?=retired))(?P<v>(?:[\w/+&'.-]+ ){{0,4}}?{_JOBS_EN})(?: by (?:trade|profession"
          rf"|training)| in training)?(?: (?:at|for|with) {_ORG_EN}|{_END_ONE})",
          _job_en),
    _rule(rf"{_BE_EN}(?P<v>(?:(?:senior|junior|software|lead|staff|retired|head|web|full[- ]stack|data|grad"
          rf"|college|university|uni|medical|law|phd|primary|high|school|er|icu|freelance|civil|mechanical"
          rf"|electrical|chemical|graphic|product|project|backend|frontend|mobile|game|ux|ui|yoga|math|maths"
          rf"|english|science|music|art|piano|taxi|truck|bus|part-time) ){{0,3}}{_JOBS_EN})(?: (?:at|for"
          rf"|with) {_ORG_EN}|(?=\s*$|\s*[,()]| and | but | from | in | living | based | working | btw))", _job_en),
    _rule(rf"my (?:job|occupation|profession|day job|job title|current job|work|job now) (?:is|:) (?:as "
          rf"|being )?(?:an? )?(?P<v>(?:[\w/+&'.-]+ ){{0,4}}?{_JOBS_EN})(?: (?:at|for|with) {_ORG_EN}|{_END_ONE})",
          _job_en),
    _rule(rf"I {_ADV}work in (?:the )?(?P<v>{_FIELDS_EN})(?: (?:industry|sector|business|field"
          rf"|department))?(?=\s*$|\s*[,()]| and | but | at | for | so | in )(?: (?:at|for) {_ORG_EN})?", _job_en),
    _rule(r"(?P<v>retired|unemployed) here$|I'm (?P<w>retired)(?=\s*$|\s*,| and | now)",
          lambda m, _: [_Pair("occupation", m.get("v") or m["w"])]),
    _rule(rf"(?:I |I'm |I have )?(?:for |because of |to start )(?:a |my )?(?:new )?job (?:at|with) {_ORG_EN}",
          _employer_en),
    _rule(rf"(?:I|we) {_ADV}(?:work|am employed|got a job|started working|started a (?:new )?job|just started"
          rf"|started|have a job) (?:over |remotely |part[- ]time |full[- ]time )?(?:at|for) {_ORG_EN}", _employer_en),
    _rule(rf"{_BE_EN}(?:working|employed|interning|an intern|employed) (?:remotely |part[- ]time "
          rf"|full[- ]time )?(?:at|for|by) {_ORG_EN}", _employer_en),
    _rule(rf"(?:my (?:employer|company) is(?: called)?|I (?:just )?joined|the company I work (?:for"
          rf"|at) is(?: called)?|I've worked (?:at|for)|I(?:'ve)? been (?:at|with|working at"
          rf"|working for)) {_ORG_EN}",
          _employer_en),
    _rule(rf"(?:I|I'm|we) {_ADV}(?:study|studying|major in|majoring in|doing a degree in|am studying"
          rf"|have a degree in|do a master's in|doing a (?:master'?s?|phd|bachelor'?s?|degree|course) in"
          rf"|learning) (?!how|to|a lot|hard|for|so|at\b|in\b|abroad|about|from|more|together|online|every|right"
          rf"|my|this|that|it\b|something|things)(?P<v>[^\n,]{{2,50}}?)(?:(?: at"
          rf"| in) (?P<s>(?:the )?(?:(?-i:[A-Z])[\w']*|university|uni|college)(?: (?:of|in|(?-i:[A-Z])[\w']*"
          rf"|university|college)){{0,5}})(?=\W|$)|{_END_ONE})", _studies_en),
    _rule(rf"(?:I|I'm|we) {_ADV}(?:study|studying|go to (?:school|uni|university|college)|enrolled"
          rf"|a student) (?:at|in) (?:the )?(?P<v>(?!home\b|school\b|night\b|the moment|university\b|uni\b"
          rf"|college\b|library)[^\n,]{{2,50}}?){_END_ONE}",
          _single("studies", refuse=
        r"\b(?:morning|evening|night|library|cafe|moment|bed|hours?|days?|\d+)\b")),
    _rule(rf"{_BE_EN}(?:an? )?(?P<v>(?:[\w-]+ ){{0,3}}student) (?:at|in) (?P<s>[^\n,]{{2,50}}?){_END_ONE}", _job_en),
    _rule(r"my (?:major|degree|course|field of study) is (?:in )?" + _ONE, _single("studies")),
    _rule(r"I go to (?P<v>(?-i:[A-Z])[\w' ]{1,40}(?:University|College|High|School|Academy|Uni))",
          _single("studies")),
    # relations and pets
    _rule(rf"(?:my|our) {_RELATION_MOD_EN}(?P<r>{_RELATION_EN})(?:'s|s')? ?(?:names? (?:is|are)|is named|is called"
          rf"|are called|are named|, called|called|named) (?P<v>[^\n]{{2,60}}?)(?=\s*$|\s*[()]| (?:{_STOP_EN}|he"
          rf"|she|who|is|has|lives|works)\b|, (?:he|she|who|and I|I|is|a)\b)", _relative_en),
    _rule(rf"(?:my|our) {_RELATION_MOD_EN}(?P<r>{_RELATION_EN}),? (?P<v>(?-i:[A-Z])[\w'-]{{1,20}}(?:(?:, | and "
          rf"|, and )(?-i:[A-Z])[\w'-]{{1,20}}){{0,4}})(?!'s|s' |\w)", _relative_en),
    _rule(rf"(?:my|our) {_RELATION_MOD_EN}(?P<r>{_RELATION_EN}) (?:is|are) (?P<v>(?-i:[A-Z])[\w'-]{{1,20}}(?:(?: "
          rf"and |, )(?-i:[A-Z])[\w'-]{{1,20}})*)(?=\s*$|\s*[,()]| and )",
          lambda m, t: [] if re.fullmatch(_NATIONS_EN, m["v"], re.I) else _relative_en(m, t)),
    _rule(rf"(?P<v>{_NAME_EN}) is my {_RELATION_MOD_EN}(?P<r>{_RELATION_EN})(?=\s*$|\s*[,()]| and | who )",
          _relative_en),
    _rule(rf"(?:I|we) {_ADV}have (?:an?|two|three|four|five|\d|one"
          rf"|twin) {_RELATION_MOD_EN}(?P<r>{_RELATION_EN})(?:,? (?:called|named|whose names? (?:is|are)"
          rf"|who is called|who's called)|,|:| \() ?(?P<v>(?!who|and|but|he|she|so)[^\n]{{2,60}}?)(?=\s*$|\s*[()]"
          rf"| (?:{_STOP_EN}|he|she|who|is|has)\b|, (?:he|she|who|and I|I|is|a|one)\b)", _relative_en),
    _rule(rf"(?:{_BE_EN}|I )(?:married to|dating|engaged to|seeing|in a relationship with"
          rf"|going out with) (?:an? \w+ (?:called|named) )?(?P<v>{_NAME_EN})(?!\w)(?=\s*$|\s*[,()]| and | for "
          rf"| since | from | who | now | but )", _name_en("partner")),
    _rule(rf"(?:I|we) {_ADV}have (?:an?|two|three|four|one) {_RELATION_MOD_EN}(?P<r>{_RELATION_EN})(?=\s*$|\s*,"
          rf"| and )", _has_relative_en),
    _rule(rf"my {_RELATION_MOD_EN}(?P<r>{_RELATION_EN}) (?:is|'s|works as|is working as"
          rf"|was) (?P<v>an? [^\n,]{{2,60}}?){_END_ONE}", _relative_is_en),
    _rule(rf"my {_RELATION_MOD_EN}(?P<r>{_RELATION_EN}) (?P<v>(?:lives|works (?:at|for|in)|studies|is (?:from"
          rf"|allergic to|vegan|vegetarian|diabetic|autistic|deaf|\d{{1,2}}(?: years old)?(?=\s*$|,))|comes from"
          rf"|is studying|is living in|has (?:{_CONDITIONS_EN}))[^\n,]{{0,60}}?){_END_LIST}", _kin_does_en),
    _rule(rf"(?:I|we) {_ADV}(?:have|own|got|adopted|just got|just adopted|recently adopted|rescued|keep) (?P<n>an?"
          rf"|two|three|four|five|six|\d|some|my) (?:(?:very |really |super )?(?:cute|fat|old|big|small|little"
          rf"|tiny|lovely|sweet|new|rescue|lazy|crazy|beautiful|adorable|young|energetic|grumpy|senior"
          rf"|\d{{1,2}}[- ](?:year|month)[- ]old),? ){{0,3}}(?P<m>(?:(?:black|white|grey|gray|brown|orange|ginger"
          rf"|calico|tabby|golden|german|french|english|border|jack russell|siamese|persian|bernese|shiba"
          rf"|australian|pet|rescue|tuxedo|bearded|leopard|british shorthair|mini|miniature|guide"
          rf"|yorkshire)(?: and white)? ){{0,2}})(?P<a>(?:{_ANIMALS_EN})s?|puppies|bunnies|kitties|mice"
          rf"|ponies)(?![\w-])(?:(?:,? (?:called|named|whose names? (?:is|are)|and (?:his|her|its) name is"
          rf"|and (?:he|she)'s called|names? (?:is|are))|,|:| \() ?(?P<v>{_NAME_EN}(?:(?: and |, | & "
          rf"|, and ){_NAME_EN}){{0,5}}|(?<=called )\w+|(?<=named )\w+))?(?! (?:problem|food|allergy|show|person"
          rf"|lover|soup|sitter|bed|toy|salad|sandwich|phobia|farm))", _pet_en),
    _rule(rf"(?:my|our) (?:(?:two|three|four|\d) )?(?P<m>(?:(?:black|white|ginger|orange|golden|german"
          rf"|tabby) )?)(?P<a>(?:{_ANIMALS_EN})s?)(?:'s)? ?(?:names? (?:is|are)|is (?:called|named)|are (?:called"
          rf"|named)|is(?= (?-i:[A-Z]))|called|named|,) (?P<v>(?-i:[A-Z])\w+(?:(?: and |, ){_NAME_EN}){{0,5}}"
          rf"|(?<=called )\w+|(?<=named )\w+|(?<=name is )\w+|(?<=names are )\w+ and \w+)", _pet_en),
    _rule(rf"(?P<v>{_NAME_EN}) is my (?P<a>{_ANIMALS_EN})(?![\w'])", _pet_en),
    # tastes
    _rule(rf"my (?:all[- ]time |absolute |personal )?favou?rite (?P<k>[\w -]{{2,40}}?)(?: of all time"
          rf"| ever)?(?: (?P<be>is|are|has to be|would be|has always been|will always be|must be|'s)|:| ="
          rf"|'s) (?:definitely |probably |still |obviously |always |actually |currently |the color "
          rf"|the colour )?{_LIST}", _favourite_en),
    _rule(r"(?P<v>[\w'’ &.-]{2,50}?) (?:is|are|has to be|will always be|has always been) (?:definitely |still "
          r"|also |one of )?my (?:all[- ]time |absolute )?favou?rite (?P<k>[\w -]{2,30}?)(?: of all time| ever)?"
          + _END_ONE,
          _favourite_en),
    _rule(rf"(?:I|we) {_ADV}(?:like|love|enjoy|adore|am fond of|am into) (?!to (?:know|think|believe|see|hear"
          rf"|be called)\b|it\b){_LIST}", _several("likes")),
    _rule(rf"(?:I|we) {_ADV}prefer (?:to have |having )?(?P<v>[^\n]{{1,120}}?)(?=\s*$| (?:to|over|rather than"
          rf"|instead of|than|more than) | (?:{_STOP_EN})\b|\s*\()", _answers_en),
    _rule(rf"{_BE_EN}(?:(?:very|super|big|a|huge|massive|such|crazy|lifelong|real|quite|pretty|rather|total|proper"
          rf"|keen|avid|hardcore) ){{0,4}}(?:fond of|into|fan of|obsessed with|interested in|passionate about"
          rf"|keen on|addicted to|crazy about|mad about|lover of|hooked on|in love with) {_LIST}", _several("likes")),
    _rule(rf"(?:I can't live without|my (?:main |favourite |biggest )?(?:hobbies|hobby|interests|passion|passions"
          rf"|guilty pleasure) (?:is|are|include|includes|:)|my hobbies:|my interests:|I have a soft spot for"
          rf"|I have a (?:passion|sweet tooth) for|nothing beats|I'd never say no to) {_LIST}", _several("likes")),
    _rule(rf"{_BE_EN}an? (?:(?:big|huge|massive|hardcore|lifelong|total|real|die-hard"
          rf"|avid) ){{0,2}}(?P<v>[\w' ]{{2,30}}?) (?:fan|lover|enthusiast|addict|nerd|geek|buff"
          rf"|aficionado)(?=\s*$|\s*[,()]| and | but | so | btw)", _several("likes")),
    _rule(rf"(?:I|we) {_ADV}(?:don't|do not|never|can't|cannot|couldn't) {_ADV}(?:(?:like|enjoy|love|care for"
          rf"|stand|bear|liked|enjoyed)(?: the taste of| the smell of)?|tolerate) {_LIST}", _several("dislikes")),
    _rule(rf"(?:I|we) {_ADV}(?:hate|dislike|detest|despise|loathe|can't stand|am not into"
          rf"|try to avoid) (?:it )?{_LIST}", _several("dislikes")),
    _rule(rf"{_BE_EN}not {_ADV}(?:(?:a|much of a|big|huge|the biggest|exactly a|really a) ){{0,2}}(?:fan of|into"
          rf"|fond of|keen on|crazy about|a fan of) {_LIST}",
          _several("dislikes")),
    _rule(r"(?P<v>[\w' -]{2,40}?) (?:isn't|aren't|is not|are not) (?:really )?(?:my thing|my cup of tea|for me)$",
          _several("dislikes")),
    _rule(r"(?:I|we) (?:really |just |absolutely )?(?:hate|can't stand|dislike) (?:it )?(?P<v>when (?:people"
          r"|someone|somebody|others|kids|men|women) [^\n,]{3,60})", _single("dislikes", words=10)),
    # what they have and what they are after
    _rule(rf"(?:I|we) {_ADV}own (?P<v>(?!up\b|it\b|my\b|nothing)[^\n,]{{2,60}}?){_END_ONE}", _owns_en),
    _rule(rf"(?:I|we) {_ADV}(?:drive|ride|play on|fly) (?P<v>an? [^\n,]{{2,40}}?){_END_ONE}", _owns_en),
    _rule(rf"(?:I|we) {_ADV}(?:have|bought|got|got myself|bought myself|just bought|just got|purchased"
          rf"|ordered myself) (?P<v>(?:an?|two|three|\d) (?:[\w'-]+ ){{0,4}}?{_THINGS_EN}(?: (?:pro|air|max|plus"
          rf"|mini|one|\d{{1,4}}\w?)){{0,3}})(?:{_END_ONE}| that| called| named)", _owns_en),
    _rule(rf"my (?P<w>car|bike|laptop|phone|computer|guitar|camera|motorbike"
          rf"|motorcycle) is (?P<v>an? [^\n,]{{2,40}}?){_END_ONE}", _owns_en),
    _rule(rf"(?:my (?:(?:big|main|biggest|ultimate|current|long[- ]term|life|new|only|fitness|personal|career"
          rf"|biggest life) )?(?:goal|dream|aim|ambition|resolution|new year's resolution)(?: (?:this"
          rf"|next) year)?(?: (?:for|of) (?:this year|next year|life|the year|20\d\d))? is|my (?:goals|dreams) are"
          rf"|I dream of|I've always wanted|I aim|I hope|I'm hoping|I'm determined|I'm trying|I'm aiming) (?:to "
          rf"|of )?(?P<v>(?!be (?:back|there)|see you|hear|get (?:this|that|it|some sleep|home)|understand"
          rf"|find out|figure|fix|install|open|make (?:this|it)|say|explain|sleep|decide|remember|help"
          rf"|know)[^\n]{{4,160}}?){_END_LIST}", _goal_en),
    _rule(rf"(?:I (?:really |also |just |would really |still |do |eventually |one day |someday |finally )*(?:want"
          rf"|would like|would love|plan|intend|need)|I'd (?:really )?(?:like|love)|(?:one day|someday|this year"
          rf"|next year) I (?:want|'d like|'d love|hope|will|plan)) to (?P<v>(?:eventually |finally |someday "
          rf"|one day |maybe )?(?:(?:learn|become|lose|quit|stop (?:smoking|drinking)|save|run (?:a|my)|complete"
          rf"|travel (?:to|around|the)|visit|move to|start (?:a|my|an|my own)|open (?:a|my|an)|write (?:a"
          rf"|my) (?:book|novel|phd|memoir)|publish|build (?:a|my)|buy (?:a|my|an)|get (?:fit|in shape|a phd"
          rf"|a degree|into|my|better at|promoted)|climb|hike|finish (?:a|my)|master|improve my|gain|retire|study"
          rf"|be able to|be fluent|read \d+|walk the|sail|go back to (?:school|university|uni)|graduate|speak"
          rf"|eat (?:less|more|healthier)|exercise|drink (?:less|more)|sleep (?:more|better)|win|pass"
          rf"|found)\b)[^\n]{{0,140}}?){_END_LIST}", _goal_en),
    _rule(rf"{_BE_EN}(?P<v>(?:saving(?: up)?|training|preparing|studying) for (?!you|it\b|this"
          rf"|that)[^\n]{{2,100}}?){_END_LIST}", _goal_en),
    _rule(rf"(?:{_BE_EN}|I {_ADV})(?:(?P<g>going to)|planning to|plan to|planning on|will be|intend to"
          rf"|going) (?P<v>(?!be (?:back|late)|sleep|bed)[^\n]{{4,160}}?){_END_LIST}", _plan_en),
    _rule(rf"(?:I'll|we'll) be (?P<v>[^\n]{{4,160}}?){_END_LIST}", _plan_en),
    _rule(rf"(?:{_BE_EN}|we're )(?P<v>(?:moving|flying|travelling|traveling|getting|starting|visiting|taking"
          rf"|having|leaving|meeting|running|hosting|quitting|retiring|graduating|heading|driving|planning|giving"
          rf"|doing|attending|celebrating|changing|joining|switching|buying|selling|off|throwing|returning"
          rf"|presenting|competing|playing|seeing|organi[sz]ing|expecting)\b[^\n]{{4,160}}?){_END_LIST}", _plan_en),
    _rule(rf"(?:I|we) {_ADV}have (?:an? |my |the |our )?(?P<v>(?:[\w'-]+ ){{0,3}}(?:appointment|exam|interview"
          rf"|flight|meeting|trip|wedding|surgery|deadline|party|concert|marathon|race|presentation|vacation"
          rf"|holiday|test|operation|anniversary|conference|date|reservation|visit|checkup|check-up|finals"
          rf"|baby due|call)\b[^\n]{{2,100}}?){_END_LIST}",
          _plan_en),
    _rule(rf"(?:my|our) (?P<v>(?:[\w'-]+ ){{0,3}}(?:appointment|exam|interview|flight|trip|wedding|surgery"
          rf"|deadline|party|marathon|presentation|vacation|holiday|test|operation|anniversary|finals)\s+(?:is"
          rf"|starts|begins|will be) [^\n]{{2,80}}?){_END_LIST}", _plan_en),
)
# fmt: on
# fmt: off
_INTRODUCED_EN: tuple[_Rule, ...] = (
    _rule(rf"I'm (?P<v>{_NAMES_EN})(?=\s*$|\s*[,()–—]|\s+-| and | but | from | living | based | btw| by the way"
          rf"| 👋)", _name_en("name")),
    _rule(r"I'm (?P<v>[a-z]{3,12})(?=,? (?:\d{2}\b|from (?!work|home)))", _name_en("name")),
)
# fmt: on
#: Lower-case names are only believed in somebody who has just said hello.
_GREETED_EN: tuple[_Rule, ...] = (
    *_INTRODUCED_EN,
    _rule(r"I'm (?P<v>[a-z]{3,14})(?=\s*$|\s*,| and )", _name_en("name")),
    _rule(r"this is (?P<v>(?-i:[A-Z])[a-z]{2,15})$", _name_en("name")),
)


_NAMED_EN = re.compile(
    r"(?:and )?(?:(?:his|her|its|their) names? (?:is|are)|(?:he|she|it)(?:'s| is) (?:called|named)|(?:they're"
    r"|they are) (?:called|named)|(?:called|named)) (?P<v>[\w'-]+(?:(?:, | and )[\w'-]+)*)",
    re.IGNORECASE,
)
_MENTION_EN = re.compile(
    rf"\b(?:[Mm]y|[Oo]ur) {_RELATION_MOD_EN}(?P<r>(?i:{_RELATION_EN}|{_ANIMALS_EN})),? (?P<v>[A-ZÀ-Þ][a-zà-ÿ][\w-]"
    rf"{{0,20}})(?!'s? (?!(?:and|but))|\w)"
)
_PLEASE_EN = re.compile(
    r"^(?:(?:please|kindly|just|also|and|ok|so|hey|oh|(?:can|could|would|will) you(?: please)?|I(?:'d"
    r"| would) (?:like|love|prefer) (?:it if you|you to|for you to|if you)(?: could)?|I (?:want|need) you to"
    r"|I would appreciate if you|try to|you should|you can|you must|make sure (?:to|you)|be sure to|if you could"
    r"|it would be (?:great|nice) if you|would you mind|do me a favou?r and|when(?:ever)? (?:you (?:answer|reply"
    r"|talk to me|respond)|answering|replying|talking to me)(?: me)?,?)[\s,]+)+|,? (?:please|thanks|thank you|thx"
    r"|ok\??|okay|will you|if possible|if you can)$",
    re.IGNORECASE,
)
_THANKS_EN = re.compile(
    r"[\s,]+(?:please|thanks|thank you|thx|ok|okay|would you|will you|if possible|if you can|k|alright|cheers"
    r"|with me|lol|haha|btw|tho|though)$",
    re.IGNORECASE,
)
_STANDING_EN = re.compile(
    r"\b(?:from now on(?:wards)?|from (?:here|today|this point) on(?:wards?)?|going forward|moving forward"
    r"|from here on out|in (?:the )?future|for (?:all )?(?:the )?future(?: reference| replies| answers| messages)?"
    r"|by default|permanently|from now|at all times|henceforth)\b,?",
    re.IGNORECASE,
)
_ONE_OFF_EN = re.compile(
    r"\b(?:this time|for this|just once|this once|right now|today|tonight|this (?:answer|message|question|text"
    r"|email|one|essay|code|page|article|document|file)|the (?:following|question|text|email|word|next question)"
    r"|below|above|for a (?:sec|second|minute|moment|while))\b",
    re.IGNORECASE,
)
_REMEMBER_EN = re.compile(
    r"(?:remember|never forget|don't forget|keep in mind|bear in mind|note|make a note|take note|note to self"
    r"|save this|memorize|memorise|store)(?:,| for (?:me|later|the future|next time)|:)*(?: (?:that"
    r"|this)(?! (?:time|day|one|guy|girl|show|movie|song|thing|moment|night|feeling|episode|game|when|is\b)):?,? ?"
    r"|: ?|(?=,? (?:I|I'm|I've|my|our|we)\b(?! (?:said|told|asked))),? ?)",
    re.IGNORECASE,
)


def _boundary_en(groups: dict[str, str], _today: date) -> list[_Pair]:
    values = [
        _trim_en(part) for part in re.split(r"\s+or\s+|\s*,\s*(?:or |and )?", re.sub(r"^(?:my|the) ", "", groups["v"]))
    ]
    return [
        _Pair("boundary", value)
        for value in values
        if value
        and not re.search(r"\b(?:it|this|that|you|them|him|her|something|anything|to anyone|now|me)\b", value, re.I)
        and len(value.split()) <= 7
    ]


# fmt: off
_REQUESTS_EN: tuple[_Rule, ...] = (
    _rule(r"(?:just |only )?call me (?:just )?(?P<v>(?!sometime|soon|when|if|later|back|tomorrow|at|on|a |an "
          r"|maybe|crazy|old|asap|in |today|tonight|after|before|anytime|by |whatever|stupid|out|names|again|your"
          r"|every)[^\n,]{1,30}?)" + _END_ONE, _name_en("called")),
    _rule(r"(?:address|refer to) me (?:as|by) (?:my nickname,? )?" + _ONE, _name_en("called")),
    _rule(r"(?:don't|never|stop|avoid|quit|no|let's not|let's never|I don't (?:want|like"
          r"|wish) (?:you )?to(?: ever)?|I'd rather (?:not|you didn't)|I'd prefer (?:not to|you didn't"
          r"|if we didn't)|I refuse to|you (?:shouldn't|can't|mustn't)|I'd appreciate if you didn't"
          r"|I hate (?:talking|when you (?:talk|ask|joke))|I'm not comfortable|I feel uncomfortable"
          r"|I don't feel comfortable) (?:ever |please |again |even |to )?(?:talk(?:ing)? (?:to me "
          r"|with me )?(?:about|of)|mention(?:ing)?|bring(?:ing)? up|discuss(?:ing)?|ask(?:ing)? (?:me )?(?:about"
          r"|anything about|questions about)|joke about|joking about|jokes about|mak(?:e|ing) (?:any )?(?:jokes"
          r"|fun) (?:about|of)|speak(?:ing)? (?:to me )?(?:about|of)|start(?:ing)? (?:on )?about"
          r"|remind(?:ing)? me (?:of|about)|giv(?:e|ing) me (?:any )?(?:advice|tips) (?:on|about)"
          r"|comment(?:ing)? on|tell(?:ing)? me (?:about|anything about)|recommend(?:ing)? (?:me )?"
          r"|suggest(?:ing)? (?:me )?|touch(?:ing)? on|talk(?:ing)?)(?<!talk)(?<!talking) (?:anything (?:about"
          r"|related to) |the topic of |the subject of )?(?P<v>[^\n]{2,80}?)(?: (?:to me|with me|anymore|any more"
          r"|again|ever|ever again|around me|at all|in front of me))*" + _END_LIST, _boundary_en),
    _rule(r"(?P<v>[\w' ]{2,40}?) (?:is|are) (?:strictly |totally |completely )?(?:off[- ]limits|a (?:taboo"
          r"|sensitive|no-go|touchy|sore) (?:topic|subject|point)|a no-go|taboo|a trigger(?: for me)?"
          r"|something I don't (?:want to )?(?:talk about|discuss))",
          _boundary_en),
    _rule(r"no (?:more )?(?P<v>spoilers?|politics|religion)$", _boundary_en),
    _rule(r"no (?P<v>[\w' ]{2,30}?) (?:talk|topics|jokes|spoilers)(?: please)?$",
          _boundary_en),
    _rule(r"(?:avoid|stay away from|steer clear of|keep away from) (?:the |any )?(?:(?:topic|topics|subject"
          r"|subjects|mention|mentions) (?:of|like|about) |talk(?:ing)? about |discussing |mentioning "
          r"|bringing up )(?P<v>[^\n]{2,60}?)" + _END_LIST, _boundary_en),
)
# fmt: on


_ORDER_EN = re.compile(
    r"(?P<always>(?:always|never|every time|each time|no matter what|whenever I \w+(?: \w+){0,3},?"
    r"|when I \w+(?: \w+){0,4},) )?(?:please )?(?:do not |don't (?:ever )?|stop |avoid |quit "
    r"|no (?:more )?(?=emojis?|emoticons|exclamation|slang|jargon|small talk|swearing|jokes|bullet|markdown|long"
    r"|lists|fluff|filler|disclaimers|apologies|spoilers|need))?(?:just |only )?(?:answer|reply|respond|write"
    r"|speak|talk|text|chat|use|using|explain|explaining|give|giving|include|including|keep|start|starting|end"
    r"|ending|begin|finish|greet|greeting|sign|add|adding|send|sending|show|ask|asking|remind|summari[sz]e|format"
    r"|put|say|saying|convert|cite|skip|stick to|switch to|be|being|calling|address|treat|assume|apologi[sz]e"
    r"|apologi[sz]ing|repeat|repeating|lecture|lecturing|swear|swearing|spell|list|provide|suggest|recommend|check"
    r"|tell|double[- ]check|address|call me by|wake|quote|mix|emojis?|emoticons|exclamation|slang|jargon"
    r"|small talk|jokes|bullet|markdown|long|lists|fluff|filler|disclaimers|apologies|spoilers)\b",
    re.IGNORECASE,
)
_NOT_ORDERS_EN = re.compile(
    r"\b(?:be (?:yourself|there|kind to|happy|careful|back|good|strong|safe|afraid|sad|silly|so sure|right"
    r"|like that|okay|ok|mad|scared|a stranger|my|with)|say never|give up|give you|start over|keep (?:going|calm"
    r"|in touch|up|it up|trying|the change)|use protection|talk to strangers|tell anyone|end up|speak too soon"
    r"|check out|put off|be worried|tell me (?:the|a|about|why|what|how)|ask me (?:why|how|what))\b",
    re.IGNORECASE,
)
_STYLE_EN = re.compile(
    rf"(?:(?:answer|reply|respond|write|speak|talk|text|chat)(?:ing)?(?: to me| me| back| with me)?(?: only"
    rf"| always| just)? (?:in|using|with) (?:{_LANGUAGES_EN}|bullets?|bullet points|short|simple|plain|full|one|a"
    rf"|british|american|lower ?case|fewer|less|more|metric|prose|haiku|rhymes?|english)|(?:speak|talk"
    rf"|write) to me (?:like|as)|(?:speak|talk|use|write|switch to"
    rf"|stick to) (?:only )?(?:{_LANGUAGES_EN})\b(?! (?:word|for)s?)|keep (?:it|things|your (?:answers?|replies"
    rf"|responses|messages|explanations)|answers|replies|responses|messages|explanations"
    rf"|everything) (?:\w+ )?(?:short|brief|simple|concise|casual|formal|light|to the point|under|below"
    rf"|professional|clear|friendly|minimal|sweet)"
    r"|be (?:more |less |very |a bit |a little |really |super |brutally |as )*(?:brief|concise|short|honest|direct"
    r"|polite|formal|informal|casual|friendly|blunt|precise|specific|clear|to the point|gentle|patient|funny"
    r"|straightforward|sarcastic|critical|detailed|verbose|wordy|chatty|serious)\b|(?:don't|do not|stop|avoid|quit"
    r"|no|no more) (?:ever )?(?:(?:use|using|send|sending|add|adding|write|writing|put|include"
    r"|including) )?(?:any |so many |too many |more )?(?:emojis?|emoticons|exclamation (?:marks|points)|slang"
    r"|jargon|small talk|swearing|swear words|bullet points|bullets|markdown|long (?:answers|replies|messages"
    r"|texts|explanations)|lists|tables|fluff|filler|disclaimers|apologies|abbreviations|all caps|caps)|(?:don't"
    r"|do not|stop|quit) (?:be|being|calling me|call me|apologi[sz]e|apologi[sz]ing|repeat|repeating|lecture"
    r"|lecturing|swear|swearing|ask|asking|explain|explaining|say|saying|start|starting|end|ending|sugarcoat"
    r"|sugar-coat|give|giving|remind|use|using)\b|use (?:only |more |fewer |less |the )?(?:metric|imperial|celsius"
    r"|fahrenheit|kilomet|kg|km|24|simple|plain|short|informal|formal|british|american|uk|us|emojis|bullet"
    r"|first name|my (?:first |nick)?name|they|he|she|markdown|simpler|lower|everyday|polite)\b|(?:address|greet"
    r"|treat) me\b|explain (?:things|everything|stuff) |give (?:me )?(?:short|brief|concise|detailed|direct"
    r"|examples|shorter|honest)|skip the (?:intro|small talk|pleasantries|disclaimers|fluff)|short answers)",
    re.IGNORECASE,
)


# ----------------------------------------------------------------------------------------------- Chinese: clauses


def _chinese(sentence: str, context: _Context) -> Iterator[_Pair]:
    """As `_english`; a Chinese question is known by its words, so each clause is judged by itself."""
    text = sentence.replace("\u3000", " ").strip()
    asked = "?" in text[-6:] or "？" in text[-6:]
    text = _TOLD_TO_ZH.sub(r"\1：", text.strip(" .!?！？。；;…~～\n"))
    segments = [segment for segment in _SEGMENT_ZH.split(text) if segment.strip()]
    bare = [_Clause.of(segment[:_CLAUSE]).without_particles() for segment in segments]
    asked_from = len(bare) - 1 if asked else len(bare)
    if asked and bare and not _QUESTION_ZH.search(bare[-1].simple):
        asked_from = 0
    poisoned = False
    for number, clause in enumerate(bare):
        if _TURN_ZH.match(clause.simple):
            poisoned = False
        poison = _POISON_ZH.search(clause.simple)
        doubtful = _QUESTION_ZH.search(clause.simple) is not None or _DOUBT_ZH.search(clause.simple) is not None
        refused = poisoned or poison is not None or doubtful or number >= asked_from
        poisoned = poisoned or poison is not None
        if number >= asked_from and _POLITE_ZH.search(clause.simple):
            yield from _requests_zh(clause.after(_OPENING_ZH), context)
        if refused:
            context.carried = False
            continue
        opened = clause.after(_OPENING_ZH)
        for part in [opened] if _REMEMBER_ZH.match(opened.simple) else opened.parts():
            facts = list(_clause_zh(part.after(_OPENING_ZH), context))
            yield from facts
            if not facts and _STRANGER_ZH.match(part.simple):
                context.carried = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clause:
    """A Chinese clause as it is matched and as it was written.

    `simple` has no spaces and only simplified characters; its character i is `written[origin[i]]`. So traditional
    writing and the spaces around Latin names need no patterns of their own, and values keep them.
    """

    simple: str
    written: str
    origin: tuple[int, ...]

    @classmethod
    def of(cls, written: str) -> _Clause:
        kept = [
            i
            for i, c in enumerate(written)
            if not c.isspace() or (0 < i < len(written) - 1 and written[i - 1].isascii() and written[i + 1].isascii())
        ]
        simple = "".join(written[i] for i in kept).translate(_SIMPLIFIED)
        return cls(simple=simple, written=written, origin=tuple(kept))

    def without_particles(self) -> _Clause:
        """The clause without the particles that only colour its end."""
        return self.piece(0, len(self.simple.rstrip("哦啊呀啦哟喔噢耶嘛哈")))

    def piece(self, start: int, end: int | None = None) -> _Clause:
        end = len(self.simple) if end is None else end
        return _Clause(simple=self.simple[start:end], written=self.written, origin=self.origin[start:end])

    def text(self, start: int, end: int) -> str:
        """The characters `start` to `end` of `simple` as they were written."""
        return self.written[self.origin[start] : self.origin[end - 1] + 1] if end > start else ""

    def after(self, opening: re.Pattern[str]) -> _Clause:
        start = 0
        for _ in range(6):
            match = opening.match(self.simple, start)
            if not match or match.end() == start:
                break
            start = match.end()
        return self.piece(start)

    def by_speaker(self) -> _Clause:
        """The clause with the 我 that was left out."""
        return _Clause(
            simple=f"我{self.simple}", written=f"我{self.written}", origin=(0, *(i + 1 for i in self.origin))
        )

    def parts(self) -> Iterator[_Clause]:
        """Cut where a new statement begins without a comma."""
        start = 0
        for match in _RUN_ON_ZH.finditer(self.simple):
            if match.start() > start:
                yield self.piece(start, match.start())
                start = match.start()
        yield self.piece(start)


def _clause_zh(clause: _Clause, context: _Context, *, leftovers: int = 8) -> Iterator[_Pair]:
    """What one clause says, and at most `leftovers` statements that follow in it without a comma."""
    simple = clause.simple
    if not simple:
        return
    named = _NAMED_ZH.match(simple)
    if named and context.nameless:
        for name in _listed_zh(clause.text(*named.span("v"))):
            yield _with_name(context.nameless, name)
        context.nameless = None
        return
    yield from _still_nameless(context)
    requests = list(_requests_zh(clause, context))
    if requests:
        yield from requests
        return
    if simple.endswith("吧"):  # "I am probably …"
        return
    unsaid = (
        context.carried
        or (context.carried is None and _ALONE_ZH.match(simple))
        or (context.kin and _KIN_ZH.match(simple))
    )
    forms = [clause, clause.by_speaker()] if unsaid and not _SUBJECT_ZH.match(simple) else [clause]
    context.kin = False
    for form in forms:
        applied = _apply_zh(_RULES_ZH, form, context.today)
        if applied:
            pairs, end = applied
            context.kin = pairs[0].key in RELATIONS
            context.carried = bool(_SELF_ZH.match(simple)) or not (context.kin or pairs[0].key == "pet")
            yield from _told(pairs, context)
            rest = form.piece(end).after(_OPENING_ZH)
            if len(rest.simple) > 1 and leftovers:
                yield from _clause_zh(rest, context, leftovers=leftovers - 1)
            return
    if _SELF_ZH.match(simple):
        context.carried = True
    elif _OTHER_ZH.match(simple):
        context.carried = False


def _requests_zh(clause: _Clause, context: _Context) -> Iterator[_Pair]:
    """As `_requests_en`."""
    simple = clause.simple
    if _ONE_OFF_ZH.search(simple):
        return
    remember = _REMEMBER_ZH.match(simple)
    if remember:
        told = clause.piece(remember.end()).after(_OPENING_ZH)
        facts = list(_clause_zh(told, context)) if told.simple else []
        if facts:
            yield from facts
        elif len(told.simple) > 2 and not _DOUBT_ZH.search(told.simple):
            yield _Pair("note", anchor(_trim_zh(told.text(0, len(told.simple))), context.today))
        return
    standing = _STANDING_ZH.match(simple)
    body = clause.piece(standing.end()) if standing else clause
    body = body.after(_PLEASE_ZH)
    applied = _apply_zh(_REQUESTS_ZH, body, context.today)
    if applied:
        yield from applied[0]
        return
    always = _ALWAYS_ZH.match(body.simple)
    order = _ORDER_ZH.match(body.simple, always.end() if always else 0)
    if (order and (standing or always)) or (
        _STYLE_ZH.match(body.simple) and not context.tasked and "：" not in simple and ":" not in simple
    ):
        yield _order_zh(body)


def _apply_zh(rules: Iterable[_Rule], clause: _Clause, today: date) -> tuple[list[_Pair], int] | None:
    """What the first fitting rule says, and where in `clause.simple` it ends; groups are read as they were written."""
    for rule in rules:
        match = rule.match(clause.simple)
        if match:
            groups = {name: clause.text(*match.span(name)) for name, found in match.groupdict().items() if found}
            pairs = [pair for pair in rule.read(groups, today) if pair.unnamed or _is_keepable(pair.value)]
            if pairs:
                return pairs, match.end()
    return None


# ------------------------------------------------------------------------------------------ Chinese: words and signs

_RELATIONS_ZH = _by_word(
    {
        "wife": "老婆 妻子 太太 媳妇", "partner": "爱人 对象 伴侣 另一半", "husband": "老公 丈夫 先生",
        "girlfriend": "女朋友 女友", "boyfriend": "男朋友 男友", "fiance": "未婚妻 未婚夫",
        "mother": "妈妈 妈 母亲 老妈", "father": "爸爸 爸 父亲 老爸", "sister": "姐姐 姐 妹妹 妹",
        "brother": "哥哥 哥 弟弟 弟", "son": "儿子 大儿子 小儿子", "daughter": "女儿 大女儿 小女儿 闺女",
        "child": "孩子 宝宝 娃", "grandmother": "奶奶 外婆 姥姥", "grandfather": "爷爷 外公 姥爷",
        "grandson": "孙子", "granddaughter": "孙女", "uncle": "叔叔 舅舅 伯伯", "aunt": "姑姑 阿姨 姨妈 小姨",
        "cousin": "表哥 表姐 表弟 表妹 堂哥 堂姐 堂弟 堂妹", "nephew": "侄子 外甥", "niece": "侄女 外甥女",
        "friend": "朋友 好朋友 最好的朋友 闺蜜 好友 死党 哥们 兄弟", "roommate": "室友 舍友", "neighbour": "邻居",
        "boss": "老板 上司 领导", "colleague": "同事", "teacher": "老师 班主任", "mentor": "导师",
        "doctor": "主治医生", "mother-in-law": "岳母 婆婆", "father-in-law": "岳父 公公", "sister-in-law": "嫂子",
    }
)  # fmt: skip
_SIMPLIFIED = str.maketrans(
    "係歡討厭過對來歲養隻貓媽兒師員醫護學會說講語務現愛記別點請從開後時區長東車買輛臺個們幾麼嗎誰為這還沒無與種間電"
    "話飯雞魚蝦職業專讀書導經夢標劃準備戀裡裏於樂聽顏動藍綠紅簡單體應該網華國廣灣龍陳劉張趙吳黃鄭謝許楊葉蘇蕭鐘羅賴"
    "週號禮習慣歷陽陰農結訴認識錯實際稱聯絡題論問關邊給讓幫總離設計銀館廠紀門戶畫畢級雙臉寫詞僅產資訊軟碼碩錢賣攝廚"
    "劇編輯釋喫麵嚴癥狀憂鬱慮氣壓談惡價運鋼機腦筆視腳爺婦鄰閨兩條鳥龜馬煩樣興較湯圓義韓貫鄉縣鎮處內蘭歐亞寧濟慶豐連"
    "遼瀋絲麗舉烏喬虧雲親倉優偉倫僱衆眾傾黨馮決減剛創劑勵盧廳廈髮發呂囉園圖聖場壞塊堅壇聲夠頭誇奧嬌孫寶寵審宮賓爾塵"
    "盡層屬崗島嶽帶彎彈強當錄憶懷懼戲戰揚擔擁擇撿換據數斷舊暱暈暫術極構櫃棧棟橋檢檳樓漢淚潔濕測漁溫遊滿濱潰濰煉熱燒"
    "煙獨獄獵豬環療瘡癡癮癬癲監盤著睏礙確穩窩竇築類糾約純納紐線練細終紹繞絕統維綿綜緬縫聰肅腸勝臟臘藝節莊薦葷藥蓮蘿"
    "營薩蔥蔣雖蠶蠻蟎補規覺訓議諱證評診譯試詩誕詢詳誤調謊譚財貨質貧購貴賀賊賈轉輕輔輩達遠遲選遞鄧鄒採鑰鐵銷錫閉閒閩"
    "閱闆閻隊陣陸陝險隨難靜項順須顧頓領額風飛飲駕罵驗騎騙魯鮮鳴鴨鴿鵡鸚麥齊齡龔粵妳姊牠唸爲鹹鹽髒傢將進",
    "是欢讨厌过对来岁养只猫妈儿师员医护学会说讲语务现爱记别点请从开后时区长东车买辆台个们几么吗谁为这还没无与种间电"
    "话饭鸡鱼虾职业专读书导经梦标划准备恋里里于乐听颜动蓝绿红简单体应该网华国广湾龙陈刘张赵吴黄郑谢许杨叶苏萧钟罗赖"
    "周号礼习惯历阳阴农结诉认识错实际称联络题论问关边给让帮总离设计银馆厂纪门户画毕级双脸写词仅产资讯软码硕钱卖摄厨"
    "剧编辑释吃面严症状忧郁虑气压谈恶价运钢机脑笔视脚爷妇邻闺两条鸟龟马烦样兴较汤圆义韩贯乡县镇处内兰欧亚宁济庆丰连"
    "辽沈丝丽举乌乔亏云亲仓优伟伦雇众众倾党冯决减刚创剂励卢厅厦发发吕啰园图圣场坏块坚坛声够头夸奥娇孙宝宠审宫宾尔尘"
    "尽层属岗岛岳带弯弹强当录忆怀惧戏战扬担拥择捡换据数断旧昵晕暂术极构柜栈栋桥检槟楼汉泪洁湿测渔温游满滨溃潍炼热烧"
    "烟独狱猎猪环疗疮痴瘾癣癫监盘着困碍确稳窝窦筑类纠约纯纳纽线练细终绍绕绝统维绵综缅缝聪肃肠胜脏腊艺节庄荐荤药莲萝"
    "营萨葱蒋虽蚕蛮螨补规觉训议讳证评诊译试诗诞询详误调谎谭财货质贫购贵贺贼贾转轻辅辈达远迟选递邓邹采钥铁销锡闭闲闽"
    "阅板阎队阵陆陕险随难静项顺须顾顿领额风飞饮驾骂验骑骗鲁鲜鸣鸭鸽鹉鹦麦齐龄龚粤你姐它念为咸盐脏家将进",
)
_SEGMENT_ZH = re.compile(
    r"[，,、]?\s*(?:——|[()（）\[\]【】|])\s*|\s*[，,]\s*|(?<=[\u3400-\u9fff])\s+(?=[\u3400-\u9fff])"
    r"|(?<=[\u3400-\u9fff])[~～]+|(?:哈哈|呵呵|嘿嘿|hh)+\s*",
    re.IGNORECASE,
)
_TOLD_TO_ZH = re.compile(r"((?:记一下|[记記]住|[记記]下[来來]?|[记記]得|[别別]忘了?))[，,]\s*")
_RUN_ON_ZH = re.compile(
    r"(?<=.)(?:(?<![叫让说得是和对跟给为像以帮被问夸骂告诉记住提聊谈讲催起到于：:])(?<!告诉)我(?=叫|是|住|在|有|对"
    r"|今年|喜欢|讨厌|爱|不喜欢|不吃|来自|会说|养|家|的|老[婆公家]|妈|爸|男朋友|女朋友|从|目前|现在)"
    r"|(?<![我且都儿子女妹弟哥姐妈爸婆公友])(?<!我的)(?<!目前)(?<!现在)(?:今年)(?=\d|[一二三四五六七八九十])"
    r"|(?<![我在且都前居直])(?<!目前)(?<!现在)(?<!一直)(?<!我家)(?<!家)住在|(?<![我自])(?<!我是)来自|(?<!我)目前"
    r"|(?<!我)现在(?=住|在|是)|但是?|不过|所以|因为|而且|然后|并且|另外)"
)
_OPENING_ZH = re.compile(
    r"(?:你好|您好|嗨|哈喽|哈啰|hello|hi|hey|大家好|早上好|晚上好|下午好|早安|晚安|早|那个|其实|对了|话说"
    r"|顺便(?:说一下|说一句|提一下|说|告诉你|一提)?|(?:我)?(?:先|来|简单)*(?:自我)?介绍一下(?:自己)?|自我介绍"
    r"|跟你(?:说|讲)(?:一下|个事|一声|哦|啊|说)?|和你说(?:一下)?|告诉你(?:一下|哦|个事|一件事)?|我(?:想)?(?:跟|和"
    r"|告诉|同)你(?:说|讲|提)?(?:一下|过|一声|哦)?|我(?:之前|上次|刚才|已经)?(?:说|提|讲)过(?:了)?|因为|因|由于"
    r"|所以|但是|但|不过|而且|并且|还有|另外|然后|同时|此外|以及|嗯+|哦+|啊+|呃+|额+|诶|哎|唉|好的?|好吧|行|可以"
    r"|是的|没错|对(?=我|$)|谢谢(?:你|啦|了)?|多谢|不好意思|抱歉|说实话|老实说|坦白说|实话实说|讲真|真的|补充一下"
    r"|补充|更正一下|更正|纠正一下|备注|注意|提醒一下|提醒你|你知道吗|要知道|你要知道|你得知道|众所周知|反正|总之"
    r"|首先|其次|最后|第一|第二|虽然|尽管|既然|毕竟|就是|那|哈+|嘿+|哎呀|哇|喂|是这样|是这样的|事情是这样的|其实呢"
    r"|目前(?=我)|现在(?=我)|最近(?=我)|平时(?=我)|今年(?=我)|如你所知|一般来说|个人来说|对我来说|至于我|至于"
    r"|关于我|你记一下|remora)[，,：:！!。~～、\s]*",
    re.IGNORECASE,
)
_QUESTION_ZH = re.compile(
    r"吗|么$|呢$|什么|啥|谁|哪|怎么|怎样|为什么|为啥|多少|几(?![只条个位年次种])|是不是|有没有|能不能|会不会"
    r"|要不要|可不可以|好不好|对不对|是否|行不行|该不该|如何|知不知道|知道我|记得我(?=叫|是谁)|猜猜|猜我|咋|何时"
    r"|多大$|不是我|还记得"
)
_POISON_ZH = re.compile(
    r"如果|要是|假如|假设|倘若|万一|若是|即使|哪怕|希望我|但愿|幻想|想象|梦见|梦到|梦里|做梦|恨不得|要不是"
    r"|[说讲](?:我|过我|自己|他|她|[^一]{0,3}[:：])|(?<!我)(?<!我想)(?<!跟你)(?<!和你)(?<!会)(?<!能)(?<!不)"
    r"(?<!母语)(?<!只)(?<!都)(?<!老实)(?<!实话)(?<!坦白)(?<!英语)(?<!顺便)说(?=[:：，]|$)|觉得我|以为|认为我"
    r"|觉得自己|当成|误会|好像我|假装|装作|扮演|据说|听说|(?<!别)(?<!不要)(?<!再)问我|叫做我|告诉他|告诉她|告诉我"
    r"|歌词|唱|台词|写道|书里|小说里|电影里|游戏里|剧里|才怪|开玩笑|算命|以前|曾经|曾|小时候(?!在|就)|从前|过去"
    r"|那时候?|当时|当年|原来我|不再|已经不|早就不|上辈子|下辈子|前世|长大后|将来|等我"
    r"|(?<!回复我)(?<!回答我)(?<!聊天)(?<!说话)的时候|谎|骗"
)
_TURN_ZH = re.compile(r"但|不过|其实|现在|而我|事实上|实际上")
_DOUBT_ZH = re.compile(
    r"可能|也许|大概(?!率)|或许|好像|似乎|不确定|应该是|差点|似的|怀疑|快要|怕是|没准|说不定|我猜|我想我是|像个"
    r"|就像|仿佛|不一定|算是半个|恐怕|估计"
)
_POLITE_ZH = re.compile(r"(?:能不能|可不可以|可以|能|麻烦|请|以后)")
_SUBJECT_ZH = re.compile(
    r"我|俺|本人|咱|他|她|它|你|您|大家|谁|这|那|有人|别人|人家|自己|请|别|不要|以后|记住|叫我|其他"
)
_SELF_ZH = re.compile(
    r"(?:我(?!们的|的?(?:朋友|同学|同事|邻居|室友|妈|爸|老公|老婆|姐|妹|哥|弟|儿子|女儿|男|女))|俺|本人|咱)"
)
_OTHER_ZH = re.compile(r"他|她|它|你|您|大家|有人|别人|我|这|那|谁")
_KIN_ZH = re.compile("(?:" + "|".join(sorted(_RELATIONS_ZH, key=len, reverse=True)) + ")")
#: Somebody with a name or a role of their own: 主角叫…, 李雷|今年28岁.
_STRANGER_ZH = re.compile(r"[^我俺咱]{1,6}(?:叫|是|住|在|有|今年|喜欢|对|来自|说)|(?![我俺咱本])[\u3400-\u9fff]{2,4}$")
#: Clauses that speak of the speaker even when they open the message without 我.
_ALONE_ZH = re.compile(r"(?:对[^，]{1,12}过敏|最喜欢的|最爱的|坐标|今年\d|本人|住在|来自)")
_NAMED_ZH = re.compile(
    r"(?:他|她|它|名字|名|分别|它的名字|他的名字|她的名字|小名)*(?:叫做?|是叫|名叫"
    r"|名字是)(?P<v>[^我你他她的]{1,16}$)"
)
_ONE_OFF_ZH = re.compile(
    r"这次|这一次|这回|今天就|这封|这段|这篇|这句|下面|以下|上面|这个|这道|这些|现在就|一会|待会|等下|等会"
)
_REMEMBER_ZH = re.compile(
    r"(?:请|麻烦|你)?(?:要|一定|务必|一定要|得)?(?:帮我|给我|替我)?(?:记住|记得|记一下|记下来?|牢记|别忘了?"
    r"|不要忘记?了?|记着|备忘)(?:一下|了|哦|啊|这点|这件事|一点)?[：:,，]?(?=.)(?!了|明天|后天|今晚|今天|到时|待会"
    r"|下周|给|来|按时|吃药|带|去|要|提醒|多|早点|早|买|叫我起|回|打|关|把)"
)
_STANDING_ZH = re.compile(
    r"(?:从(?:现在|今天|今|此|这刻)(?:开始|起|往后|以后|以后开始)?|从今以后|从今往后|今后|往后|以后(?=每|请|都|就"
    r"|你|别|不要|不许|不准|用|回|跟|和|叫|给|说|尽量|每次|只|多|少|一律|要|麻烦|对|称|讲|全|统一|能|可|聊|提|答"
    r"|我问|我说|记得|咱|直接|所有)|之后(?=请|都|别|不要|用|回|叫)|以后[,，])(?:开始)?(?:请|你|您|就|都|麻烦|记得"
    r"|能不能|可以|可不可以|能|，|,)*"
)
_PLEASE_ZH = re.compile(
    r"(?:请|麻烦|拜托|希望|我希望|我想让|我想要|我要|你可以|可以|你能不能|能不能|能|你能|可不可以|最好|你要|你|您"
    r"|咱们?|我们|(?:回复|回答|和我聊天|跟我聊天|跟我说话)我?的?时候?|那你|那就|就|以后|之后|我想|都"
    r"|跟我聊天的?时候?|和我聊天的?时候?|回答(?:我|问题)?的?时候|聊天的?时候?)"
)
_ALWAYS_ZH = re.compile(
    r"(?:请|你)?(?:每次(?:都)?|总是|始终|一直|永远|都|一律|务必|一定要?|统一|尽量|全程)(?:都|请|要|用(?=$))?"
    r"|(?:我(?:问|说)[^，]{1,12}(?:时|的时候)[，,]?)"
)
_ORDER_ZH = re.compile(
    r"(?:请|都|每天|每周|每次|早上|晚上|睡前|要|就|只|多|少|尽量|直接|先|再|也|全部?|一律|必须|可以){0,4}(?:用"
    r"|使用|别|不要|不用|不许|不准|回答|回复|回|答|说|讲|叫|称|给|跟|对|和|写|聊|提醒|解释|保持|加|带|发|简|短"
    r"|详细|说话|语气|称呼|以|把|按|避免|停止|控制|举|列|推荐|问|夸|鼓励|管)"
)


# ------------------------------------------------------------------------------------------ Chinese: readers, rules

_VL = r"(?P<v>.{1,80}?)(?=$|[。！!（(]|但是?|不过|所以|因为|而且|然后|并且|尤其|特别是|我(?!$))"
_TAIL_ZH = re.compile(
    r"(?:[啦呀啊哦喔哟呢哈嘛吧呗噢耶咯]|的哦|了哦|就好了?|就行了?|就可以了?|就是了|来着|而已|的说|好吗|好不好"
    r"|可以吗|行吗|谢谢你?|多谢|拜托了?|吗|～|~|等等?|什么的|之类的?)+$"
)
_PLACE_WORDS = (
    "北京|上海|天津|重庆|广州|深圳|杭州|南京|苏州|成都|武汉|西安|长沙|郑州|青岛|大连|厦门|福州|宁波|无锡|合肥|济南|"
    "沈阳|哈尔滨|长春|昆明|贵阳|南宁|海口|三亚|兰州|银川|西宁|拉萨|乌鲁木齐|呼和浩特|太原|石家庄|南昌|珠海|东莞|佛"
    "山|惠州|中山|温州|嘉兴|绍兴|金华|台州|常州|南通|扬州|徐州|镇江|泉州|漳州|烟台|潍坊|洛阳|开封|桂林|丽江|大理|宜"
    "昌|襄阳|株洲|湘潭|绵阳|河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|广西|海南|"
    "四川|贵州|云南|陕西|甘肃|青海|宁夏|新疆|西藏|内蒙古?|东北|江南|台湾|香港|澳门|台北|高雄|台中|台南|新竹|桃园|九"
    "龙|新北|嘉义|花莲|魔都|帝都|纽约|洛杉矶|旧金山|湾区|西雅图|波士顿|芝加哥|伦敦|巴黎|柏林|慕尼黑|东京|大阪|京都|"
    "首尔|釜山|曼谷|新加坡|悉尼|墨尔本|多伦多|温哥华|里斯本|波尔图|马德里|罗马|米兰|阿姆斯特丹|苏黎世|维也纳|莫斯科"
    "|迪拜|吉隆坡|槟城|马尼拉|雅加达|河内"
)
_COUNTRIES_ZH = (
    "中国|日本|韩国|朝鲜|美国|英国|法国|德国|意大利|西班牙|葡萄牙|俄罗斯|加拿大|澳大利亚|澳洲|新加坡|马来西亚|泰国|"
    "越南|印度尼西亚|印尼|印度|菲律宾|巴西|墨西哥|荷兰|比利时|瑞士|瑞典|挪威|丹麦|芬兰|波兰|希腊|土耳其|埃及|乌克兰"
    "|新西兰|阿根廷|爱尔兰|蒙古|缅甸|柬埔寨|老挝|南非|奥地利|匈牙利|捷克|以色列|伊朗"
)
_LANGUAGES_ZH = (
    "普通话|国语|中文|汉语|华语|粤语|广东话|闽南语|闽南话|台语|客家话|上海话|四川话|潮汕话|温州话|英语|英文|日语|日"
    "文|韩语|韩文|法语|法文|德语|德文|西班牙语|西语|葡萄牙语|葡语|意大利语|俄语|俄文|阿拉伯语|泰语|越南语|印尼语|马"
    "来语|印地语|荷兰语|瑞典语|波兰语|土耳其语|拉丁语|世界语|手语|藏语|维语|蒙语"
)
_JOBS_ZH = (
    "医生|护士|护士长|牙医|兽医|药剂师|中医|医师|教师|老师|教授|讲师|助教|辅导员|校长|程序员|程式员|码农|程序猿|工"
    "程师|设计师|架构师|分析师|会计师?|出纳|审计师?|律师|法官|检察官|警察|民警|消防员|军人|士兵|公务员|记者|编辑|作"
    "家|作者|诗人|写手|翻译|画家|画师|插画师|漫画家|摄影师|导演|编剧|演员|歌手|音乐人|钢琴家|模特|主播|博主|up主|自"
    "媒体|厨师|面包师|烘焙师|咖啡师|调酒师|服务员|店员|收银员|店长|店主|老板|个体户|创业者|创始人|合伙人|经理|总监|"
    "主管|助理|秘书|文员|前台|行政|人事|hr|HR|财务|销售|客服|运营|产品经理|产品|项目经理|测试|前端|后端|全栈|运维|"
    "算法|数据分析师|(?:前端|后端|软件|游戏|安卓|全栈|web|java|Java)?开发|研究员|科学家|科研人员|博士后|学生|大学生"
    "|研究生|硕士生|博士生|本科生|高中生|初中生|小学生|留学生|实习生|医学生|大[一二三四]学生|高[一二三]学生|大[一二"
    "三四](?:学生)?|研[一二三](?:学生)?|高[一二三](?:学生)?|司机|飞行员|空姐|空乘|快递员|快递小哥|外卖员|外卖小哥|"
    "外卖骑手|骑手|保安|保洁|保姆|月嫂|阿姨|工人|电工|焊工|木工|水管工|技工|技术员|农民|渔民|理发师|美容师|美甲师|"
    "化妆师|裁缝|健身教练|教练|瑜伽老师|导游|心理咨询师|咨询师|顾问|社工|建筑师|规划师|房产中介|中介|经纪人|保险代"
    "理|银行职员|柜员|职员|上班族|白领|自由职业者?|全职妈妈|全职太太|家庭主妇|全职爸爸|退休教师|退休工人|退休|运动"
    "员|舞者|舞蹈老师|配音演员|声优|图书管理员|馆员|飞机师|船员|海员|药师|营养师|康复师|兽医师|文案|策划|站长|采购|"
    "物流|交易员|基金经理|投行|精算师|法务|公关|市场|猎头|培训师|剪辑师|动画师|游戏策划|花艺师|宠物美容师"
)
_CONDITIONS_ZH = (
    "糖尿病|[12一二]型糖尿病|高血压|低血压|低血糖|高血脂|哮喘|气喘|抑郁症?|忧郁症|焦虑症|躁郁症|双相"
    "(?:情感障碍)?|强迫症|多动症|adhd|ADHD|自闭症|癫痫|失眠症?|偏头痛|鼻炎|过敏性鼻炎|鼻窦炎|胃炎|慢性胃炎|胃病|胃"
    "溃疡|肠炎|肠易激综合[征症]|关节炎|类风湿(?:性?关节炎)?|痛风|湿疹|荨麻疹|银屑病|牛皮癣|甲亢|甲减|桥本|贫血|地中"
    "海贫血|蚕豆病|心脏病|冠心病|先天性心脏病|心律不齐|肾病|肝炎|乙肝|脂肪肝|癌症|肺癌|乳腺癌|白血病|多囊"
    "(?:卵巢综合征)?|颈椎病|腰椎间盘突出|腰突|骨质疏松|色盲|色弱|近视|散光|耳鸣|青光眼|白内障|帕金森|红斑狼疮|克罗"
    "恩病|乳糖不耐受?(?:症)?|麸质不耐受|社恐|拖延症|选择困难症|晕车|晕血|幽闭恐惧症|恐高症?|睡眠呼吸暂停|阅读障碍"
)
_ANIMALS_ZH = (
    "猫咪|猫猫|猫|狗狗|狗|犬|兔子|兔|仓鼠|金鱼|热带鱼|鱼|乌龟|龟|鹦鹉|鸟|蜥蜴|守宫|蛇|刺猬|龙猫|荷兰猪|豚鼠|鸡|鸭子"
    "?|鸽子|马|羊|猪|牛|柯基|金毛|拉布拉多|哈士奇|二哈|柴犬|泰迪|贵宾|比熊|博美|边牧|萨摩耶|法斗|吉娃娃|雪纳瑞|布偶"
    "|英短|美短|暹罗|橘猫|狸花|缅因|蓝猫|加菲|德牧|阿拉斯加|斗牛|腊肠|蜜袋鼯|角蛙|变色龙|蜘蛛"
)
_RELATION_ZH = "(?:" + "|".join(sorted(_RELATIONS_ZH, key=len, reverse=True)) + ")"
_FAVOURITES_ZH = _by_word(
    {
        "color": "颜色", "food": "食物 菜 美食 吃的", "movie": "电影 片子", "song": "歌 歌曲", "book": "书",
        "novel": "小说", "sport": "运动 体育运动", "city": "城市", "singer": "歌手", "band": "乐队",
        "season": "季节", "animal": "动物", "fruit": "水果", "actor": "演员", "author": "作家", "game": "游戏",
        "anime": "动漫 动画", "show": "电视剧 剧", "drink": "饮料 奶茶", "flower": "花", "number": "数字",
        "team": "球队", "player": "球星", "country": "国家", "dessert": "甜点", "vegetable": "蔬菜",
        "subject": "科目", "director": "导演", "poet": "诗人", "music": "音乐", "restaurant": "餐厅",
    }
)  # fmt: skip
_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏"
    "钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文欧阳司马"
)


def _simple(text: str) -> str:
    return text.translate(_SIMPLIFIED)


def _order_zh(clause: _Clause) -> _Pair:
    text = _trim_zh(clause.text(0, len(clause.simple)))
    return _Pair("instruction", text.removesuffix("了") if clause.simple[0] in "别不" else text)


def _trim_zh(text: str) -> str:
    text = _strip_signs(text)
    if _HAN.search(text):
        text = _strip_signs(_TAIL_ZH.sub("", text)) or text
    return text


def _listed_zh(text: str) -> list[str]:
    parts = re.split(r"\s*(?:、|,|，|/|以及|还有|(?<=[^，、])(?:和|与|及|&|跟)(?=[^平，、]))\s*", text)
    if (
        any(len(part) == 0 for part in parts)
        or text.startswith(("和", "与", "跟"))
        or re.search(r"[和跟与](?:我|你|他|她|朋友|家人|孩子|小孩|老婆|老公|人|同事|狗狗|别人|大家)", text)
    ):
        parts = [text] if not re.search("[、]", text) else re.split("、", text)
    return [trimmed for part in parts if (trimmed := _trim_zh(part))]


def _single_zh(key: str, *, most: int = 20, refuse: str = r"(?!)") -> _Read:
    refused = re.compile(refuse)

    def read(groups: dict[str, str], _today: date) -> list[_Pair]:
        value = _trim_zh(groups["v"])
        return [] if len(value) > most or refused.search(_simple(value)) or not value else [_Pair(key, value)]

    return read


_EMPTY_ZH = re.compile(
    r"^(?:就|你|您|他|她|它|这|那|自己|上了|上|过|一切|所有|什么|的|了|人|我|大家|它们|不|哪|被|一个人$"
    r"|一个[^，]{0,4}人$|看你|和你|跟你|死|听你|逗|把|让|叫|吃亏|生气|迟到|东西|某个|过你|问|说|做你|做自己)|你"
    r"|的人|的话|这个|那个|这首|这样|那样|着$|^.$(?<![猫狗茶酒书花猪辣甜酸咸鱼虾蛇雨雪海山歌画])"
)


def _several_zh(key: str) -> _Read:
    def read(groups: dict[str, str], _today: date) -> list[_Pair]:
        values = [value.removesuffix("了") for value in _listed_zh(groups["v"])]
        if any(_EMPTY_ZH.search(_simple(value)) or len(value) > 24 for value in values):
            return []
        return [_Pair(key, value) for value in values]

    return read


_NOT_PLACE_ZH = re.compile(
    r"院$|学校|宿舍|酒店|宾馆|楼$|层$|家里|这里|那里|这儿|那儿|附近|附近$|隔壁|一起|过去|梦|心里|云端|医院|公司"
    r"|单位|爸妈|父母|朋友家|别人|你|他|她|我|天堂|地狱|月球|火星|附近的|哪|一个人|外面|出租屋|房子|公寓|别墅|的人"
    r"|的是|很|贵|方便|回忆|的地方|城堡|山洞|童话|海底|的$|一样|已经|忙|路上|车上|床上|这边|那边|同一|独居|单人"
)


def _place_zh(key: str) -> _Read:
    def read(groups: dict[str, str], _today: date) -> list[_Pair]:
        value = re.sub(
            r"(?:市区|那边|这边|这里|附近|了|一带|工作|生活|上班|读书|上学|定居|居住)$",
            "",
            _trim_zh(groups["v"]),
        )
        return [_Pair(key, value)] if 1 < len(value) <= 14 and not _NOT_PLACE_ZH.search(_simple(value)) else []

    return read


def _name_zh(key: str) -> _Read:
    refused = re.compile(
        r"^(?:妈|爸|老公|老婆|儿子|女儿|朋友|了|他|她|你|您|它|不|个|车|外卖|醒|人|什么|啥|过|着|来|去|一|大家|我"
        r"|起|滴|快递|救护|代驾|的|名字|板|停|好|苦|喊|他们)|你|您|我|外卖|的$|[吃喝]|点了|一声|起床|早点|别人"
        r"|服务员(?!.)"
    )

    def read(groups: dict[str, str], _today: date) -> list[_Pair]:
        value = re.sub(
            r"(?:就好了?|就行了?|就可以了?|就成|好了|吧|即可|也行|都行|也可以|都可以|啦|哦|呀|哈|喔)+$",
            "",
            _trim_zh(groups["v"]),
        )
        limit = 24 if value.isascii() else 8
        return (
            [_Pair(key, value)]
            if value and len(value) <= limit and not refused.search(_simple(value)) and not value.isdigit()
            else []
        )

    return read


def _is_name_zh(groups: dict[str, str], _today: date) -> list[_Pair]:
    """我是小王, 我是陈静: only shapes that can hardly be anything but a name."""
    value = _simple(groups["v"])
    if re.search(
        r"[人生员师的手子痴男女党家者长工农民货粉控迷包友妈爸哥姐弟妹儿孩白板气时业科兵星座迷型后前]$|学|时候"
        r"|^小[时学众气心白三偷]|^老[师板实家婆公年外]|^高[中手三二一兴]|^白[领痴]|^金|^万|^常|^方|^文|^易|^于|^任"
        r"|^马上|^何",
        value,
    ):
        return []
    return [_Pair("name", groups["v"])]


def _age_zh(groups: dict[str, str], _today: date) -> list[_Pair]:
    try:
        years = number_zh(_simple(groups["v"]))
    except ValueError:
        return []
    return [_Pair("age", str(years))] if 3 <= years <= 119 else []


def _birthday_zh(groups: dict[str, str], today: date) -> list[_Pair]:
    said = _simple(groups["v"])
    if said in {"今天", "明天", "后天"}:
        day = next(mentions(said, today)).first
        return [_Pair("birthday", f"{day.month}月{day.day}日")]
    numbers = _DATE_ZH.fullmatch(said)
    if not numbers or numbers["lunar"]:
        return [_Pair("birthday", groups["v"])] if numbers else []
    try:
        month, day_of_month = number_zh(numbers["m"]), number_zh(numbers["d"])
    except ValueError:
        return []
    if not (1 <= month <= 12 and 1 <= day_of_month <= 31):
        return []
    if not numbers["y"]:
        return [_Pair("birthday", f"{month}月{day_of_month}日")]
    year = int(numbers["y"])
    if year < 100:  # "90年" is the latest such year that is past
        year += 1900 if year > today.year % 100 else 2000
    return [_Pair("birthday", f"{year:04}-{month:02}-{day_of_month:02}")]


_DATE_ZH = re.compile(
    r"(?:(?P<y>\d{2,4})[-年/.])?(?:(?P<lunar>农历|阴历)|阳历|公历)?(?P<m>[\d一二三四五六七八九十]{1,3})[-月/.]初?"
    r"(?P<d>[\d一二三四五六七八九十]{1,3})[日号]?"
)


def _job_zh(groups: dict[str, str], today: date) -> Iterator[_Pair]:
    value = _trim_zh(groups["v"])
    simple = _simple(value)
    if len(value) <= 14 and not re.search(
        r"好学生|坏学生|的学生|差生|你|他|她|好老师|好妈妈|好司机|天生|伟大|合格|女生|男生", simple
    ):
        yield _Pair("occupation", value)
        if groups.get("e"):
            yield from _employer_zh({"v": groups["e"]}, today)


def _employer_zh(groups: dict[str, str], _today: date) -> list[_Pair]:
    value = _trim_zh(groups["v"])
    simple = re.sub(rf"^(?:{_PLACE_WORDS}|{_COUNTRIES_ZH})市?的?(?=.)", "", _simple(value))
    simple = re.sub(r"^(?:一家|一间|一个|一所|某家?|家|当地的?一?[家所]?)(?=..)", "", simple)
    value = value[len(value) - len(simple) :]
    place = re.fullmatch(rf"(?:{_PLACE_WORDS}|{_COUNTRIES_ZH})(?:市|省|区|那边|这边)?", simple)
    bad = re.search(
        r"^(?:家|公司|这里|那里|这|那|外面|外地|国外|国内|努力|认真|好好|一起|忙|哪|里面|单位|本地|老家|异地|海外"
        r"|[^，]*找|县城|市区|城里|一线城市|附近|加班|线上|远程|现在|这边|那边|办公室|同一家公司)$|努力|认真|每天"
        r"|晚上|早上|周末|拼命|你|他|她|省$|市$|区$",
        simple,
    )
    return [_Pair("employer", value)] if value and not place and not bad and len(value) <= 20 else []


def _studies_zh(groups: dict[str, str], _today: date) -> list[_Pair]:
    found = []
    school = groups.get("s")
    if (
        school
        and not re.search(r"^(?:家|学校|这|那|大学|外地|国外|哪|图书馆|教室)", _simple(school))
        and not re.fullmatch(rf"{_PLACE_WORDS}|{_COUNTRIES_ZH}", _simple(school))
    ):
        found.append(_Pair("studies", _trim_zh(school)))
    subject = groups.get("v")
    if subject:
        found += [
            _Pair("studies", value)
            for value in _listed_zh(subject)
            if len(value) <= 14
            and not re.search(
                r"^(?:[高初大研][一二三四]|高中|初中|大学|小学|中学|博士|硕士|研究生|本科|习|会(?!计)|到|着|了|校"
                r"|不|得|你|他|她|一下|过|以|点|书$|坏|好)|你|怎么|如何|一点|东西|做人",
                _simple(value),
            )
        ]
    return found


def _languages_zh(key: str) -> _Read:
    def read(groups: dict[str, str], _today: date) -> list[_Pair]:
        simple = _simple(groups["v"])
        return (
            [_Pair(key, groups["v"][m.start() : m.end()]) for m in re.finditer(_LANGUAGES_ZH, simple)]
            if len(simple) == len(groups["v"])
            else []
        )

    return read


def _relative_zh(groups: dict[str, str], _today: date) -> list[_Pair]:
    key = _RELATIONS_ZH[_simple(groups["r"])]
    refused = re.compile(r"^(?:我|你|他|她|不|了|什么|过|着|一|个)|我|你|起床|外卖|吃饭|回家")
    return [
        _Pair(key, name)
        for name in _listed_zh(groups["v"])
        if len(name) <= (24 if name.isascii() else 6) and not refused.search(_simple(name))
    ]


def _relative_is_zh(groups: dict[str, str], _today: date) -> list[_Pair]:
    return [_Pair(_RELATIONS_ZH[_simple(groups["r"])], _trim_zh(groups["v"]))]


def _kin_does_zh(groups: dict[str, str], today: date) -> list[_Pair]:
    return _relative_is_zh(groups, today) if _RELATIONS_ZH[_simple(groups["r"])] in _KIN else []


def _pet_zh(groups: dict[str, str], _today: date) -> list[_Pair]:
    animal = re.sub(r"^(?:小|大|可爱的?|胖|老|的|很|超|可爱|漂亮的?|调皮的?|乖)+(?=[^熊])", "", _simple(groups["a"]))
    animal = {"猫咪": "猫", "猫猫": "猫", "狗狗": "狗", "小狗": "狗", "小猫": "猫"}.get(animal, animal)
    written = (
        groups["a"][len(groups["a"]) - len(animal) :]
        if len(animal) <= len(groups["a"]) and _simple(groups["a"]).endswith(animal)
        else animal
    )
    names = [name for name in _listed_zh(groups.get("v", "")) if len(name) <= 12]
    if names:
        return [_Pair("pet", f"{written} {name}") for name in names]
    count = _simple(groups.get("n", ""))
    return [
        _Pair(
            "pet",
            f"{groups['n']}{written}" if count and count[0] in "两二三四五六七八九十23456789" else written,
            unnamed=True,
        )
    ]


def _favourite_zh(groups: dict[str, str], _today: date) -> list[_Pair]:
    thing = _simple(groups["k"])
    value = _trim_zh(groups["v"])
    if (
        re.search(r"人|事|东西|地方|你", thing)
        or re.search(r"^(?:你|他|她|这|那|什么)|你", _simple(value))
        or len(value) > 24
    ):
        return []
    return [_Pair(f"favourite-{_FAVOURITES_ZH.get(thing, normalise_key(thing))}", value)]


def _owns_zh(groups: dict[str, str], _today: date) -> list[_Pair]:
    value = re.sub(r"^的", "", _trim_zh(groups["v"]))
    bad = re.search(
        r"问题|建议|意见|想法|电影|电视剧|小说|剧|书$|菜|药|题|钥匙|眼泪|话|时间|朋友|事|你|作业|考试|面试|会$"
        r"|好奇|火|年纪|饭|歌|机票|票",
        _simple(value),
    )
    return [_Pair("owns", value)] if value and not bad and len(value) <= 16 else []


def _goal_zh(groups: dict[str, str], today: date) -> list[_Pair]:
    value = _trim_zh(groups["v"])
    bad = re.search(r"你|这个|那个|什么|一下|怎么", _simple(value))
    return [_Pair("goal", anchor(value, today, ahead=True))] if not bad and 1 < len(value) <= 30 else []


def _plan_zh(groups: dict[str, str], today: date) -> list[_Pair]:
    said = groups["v"]
    ahead = [mention for mention in mentions(said, today, ahead=True) if mention.last > today]
    month = re.search(
        r"(?:今年|明年|后年)|\d{1,2}月|(?:过年|春节|国庆|暑假|寒假|五一|元旦|圣诞|中秋|端午|年底|月底|夏天|冬天"
        r"|春天|秋天|毕业后|[一二三四五六七八九十]月)",
        _simple(said),
    )
    value = re.sub(r"(?:就要|就|会|将要?|打算|计划|准备|得|决定)(?=[^，]{2})", "", _trim_zh(said), count=1)
    if (
        not (ahead or month)
        or len(value) > 40
        or len(value) < 4
        or re.search("你|昨|上周|上个月|去年|再[来说聊问看见]|上班$|回来$|联系|休息", _simple(value))
    ):
        return []
    return [_Pair("plan", anchor(value, today, ahead=True))]


def _boundary_zh(groups: dict[str, str], _today: date) -> list[_Pair]:
    value = re.sub(
        r"^(?:关于|有关|我?的|我(?=..))(?=.)|(?:的?(?:话题|事情?|问题|内容|笑话|玩笑|方面的事?))$|(?:了|好吗|行吗)$",
        "",
        _trim_zh(groups["v"]),
    )
    value = re.sub(r"(?:的?(?:话题|事情?|问题|内容|笑话|玩笑))$", "", value)
    values = [item for part in re.split(r"或者?|、|和", value) if (item := _trim_zh(part))]
    return [
        _Pair("boundary", item)
        for item in values
        if len(item) <= 16
        and not re.search(r"^(?:这|那|它|了|这个|那个|他|她|什么|别的|其他|些|起|话)|你$|废话", _simple(item))
    ]


_ADV_ZH = (
    r"(?:(?:特|也|还|都|就|真的|其实|平时|一直|从小就?|特别|非常|最|很|超级?|挺|蛮|比较|尤其|可|好|十分|相当|巨|贼"
    r"|更|最近|有点|有些|确实|一向|向来|平常|本来就|老|总|经常|周末|没事就?|现在|目前|通常|永远|只|闲的时候|空闲时"
    r"|有空就?|的确|其实也|偏|实在|真心|是真的|天生|主要|个人|严重|轻度|轻微|重度|极度|极其|稍微|完全|绝对|一般"
    r"|也是|偶尔|太|并|怎么|一点也|一点都|从来|根本|都很|不太会?)){0,4}"
)

_QI = r"(?:(?P<n>(?:一|两|二|三|四|五|六|[1-9])?(?:只|条|个|匹|头|窝|对)))"


def _surname_zh(groups: dict[str, str], _today: date) -> list[_Pair]:
    """我姓林, 我姓林叫美玲, 我姓林叫林美玲."""
    surname, name = groups["v"], groups.get("w", "")
    return [_Pair("name", name if name.startswith(surname) else surname + name)]


def _school_zh(groups: dict[str, str], today: date) -> list[_Pair]:
    """我是北大法律系的研究生."""
    subject = re.sub("(?:专业|系)的?$", "", groups.get("w", ""))
    return _studies_zh({"s": groups["s"], **({"v": subject} if subject != groups.get("w", "") else {})}, today)


# fmt: off
_RULES_ZH: tuple[_Rule, ...] = (
    # who they are
    _Rule(r"(?:我|本人|俺)(?:的)?(?:名字|全名|大名|本名|真名|姓名)(?:叫做?|是|：|:)(?P<v>[^，我]{1,20}?)(?=$|[（(]"
          r"|今年|来自|住|，)", _name_zh("name")),
    _Rule(r"(?:我|本人|俺)(?:就|全名|大名|本名|真名)?叫做?(?P<v>[^，我]{1,20}?)(?=$|[（(]|今年|来自|住在|是个|是一"
          r"|是名|\d|，|，|现在|目前|在)", _name_zh("name")),
    _Rule(r"(?:我|本人|俺)姓(?P<v>[\u3400-\u9fff]{1,2})(?=$|叫|名|，)(?:名?叫?(?P<w>[\u3400-\u9fff]{1,3}))?",
          _surname_zh),
    _Rule(rf"(?:我|本人|俺)(?:就)?是(?P<v>(?:[小老阿][\u3400-\u9fff]{{1,2}}|[{_SURNAMES}][\u3400-\u9fff]{{1,2}}))$",
          _is_name_zh),
    _Rule(r"(?:我|俺)(?:是|就是)(?P<v>[A-Z][a-z]{1,15})$",
          lambda g, _: [] if _NOT_NAMES.fullmatch(g["v"]) else [_Pair("name", g["v"])]),
    _Rule(r"(?:(?:大家|(?:我的?)?(?:朋友|同学|同事|家人|爸妈)们?|别人|同事们?|同学们?|家里?人|人家|他们"
          r"|身边的?人)(?:们)?(?:一般|平时|平常|通常)?(?:都|也|就)?(?:喜欢|习惯)?(?:叫|喊|称呼?)我(?:的?(?:外号"
          r"|绰号|昵称))?(?:叫|为|作|做)?|我的?(?:昵称|外号|绰号|小名|网名|英文名)(?:叫做?|是))(?P<v>[^，]{1,16})",
          _name_zh("called")),
    _Rule(r"(?:我|本人|俺)(?:今年|都|已经|刚满|刚过|现在|刚|马上)?(?<!马上)(?:都|已经|刚满|刚过|刚好|才"
          r"|满)?(?P<v>\d{1,3}|[一二两三四五六七八九]?十[一二三四五六七八九]?)(?:周?岁)(?!的时候|时|那年|以|之|就"
          r"|前|开始|之前|半|大|生日)", _age_zh),
    _Rule(r"(?:我|本人|俺)(?:今年|已经|刚满|刚过|都)(?:已经|都|刚|刚满|才)?(?P<v>\d{1,2}"
          r"|[一二两三四五六七八九]?十[一二三四五六七八九]?)(?=$|了|，|啦)", _age_zh),
    _Rule(r"(?:我|本人|俺)(?P<v>[二三四五六七八九]?十[一二三四五六七八九]?|[1-9]\d)了$", _age_zh),
    _Rule(r"(?:我|本人|俺)的?年龄是?(?P<v>\d{1,3})", _age_zh),
    _Rule(r"(?:我|本人|俺)?的?(?:生日|出生日期)(?:就?是|在|：|:)?(?:在)?(?P<v>(?:\d{2,4}年)?(?:农历|阴历|阳历"
          r"|公历)?[\d一二三四五六七八九十]{1,3}月初?[\d一二三四五六七八九十廿]{1,3}[日号]?"
          r"|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|今天|明天|后天)", _birthday_zh),
    _Rule(r"(?:我|本人|俺)(?:是|出生于|生于|出生在)?(?:在)?(?P<v>(?:\d{2,4}年)?(?:农历|阴历"
          r"|阳历)?[\d一二三四五六七八九十]{1,3}月初?[\d一二三四五六七八九十廿]{1,3}[日号]?)(?:出生|生日|生的|生人"
          r"|过生日|的生日|生$|$)", _birthday_zh),
    _Rule(r"(?:我|本人|俺)(?:出生于|生于)(?P<v>\d{4}年\d{1,2}月\d{1,2}[日号])", _birthday_zh),
    _Rule(rf"(?:我|本人|俺)(?:也|其实|是|就)*(?:是)(?:一个|个|地道的?"
          rf"|土生土长的?)?(?P<v>(?:{_COUNTRIES_ZH})(?:籍)?(?:华人|人)|华裔|[\u3400-\u9fff]{{1,3}}籍华人"
          rf"|[\u3400-\u9fff]裔[\u3400-\u9fff]{{1,3}}人)(?=$|，|但|不过|现在|在)",
          _single_zh("nationality")),
    _Rule(rf"(?:我|本人)的?国籍是(?P<v>(?:{_COUNTRIES_ZH})人?)", _single_zh("nationality")),
    _Rule(rf"(?:我|本人|俺)的?(?:母语|第一语言)(?:是|：)(?P<v>(?:{_LANGUAGES_ZH})[^，]{{0,10}})",
          _languages_zh("native-language")),
    _Rule(rf"(?P<v>{_LANGUAGES_ZH})(?:才)?是我的?母语", _languages_zh("native-language")),
    _Rule(rf"(?:我|本人|俺){_ADV_ZH}(?:会|能|可以|懂)(?:一点点?|一些|点|说|讲|流利地?|流利的|用|简单的?|基本的?|些"
          rf"|几句|一口){{0,3}}(?P<v>(?:{_LANGUAGES_ZH})(?:(?:、|和|与|以及|还有|跟|同|，)?(?:一点点?|一些|点|说"
          rf"|讲|流利的|会|简单的)?(?:{_LANGUAGES_ZH})){{0,5}})",
          _languages_zh("speaks")),
    _Rule(rf"(?:我|本人|俺)(?:平时|在家|日常|一般|家里|只|都)?(?:说|讲)(?P<v>(?:{_LANGUAGES_ZH})(?:(?:、|和|与"
          rf"|以及|还有|跟)(?:{_LANGUAGES_ZH})){{0,4}})", _languages_zh("speaks")),
    _Rule(rf"(?:我|本人)的?(?P<v>{_LANGUAGES_ZH})(?:说得|讲得)?(?:很|挺|非常|比较)?(?:流利|好|不错)",
          _languages_zh("speaks")),
    _Rule(r"(?:我|本人)(?:的|这边的?|所在的?|这里的?)?时区(?:是|为|：|:)(?P<v>[^，]{2,24}?)(?=$|，|所以|,)",
          _single_zh("timezone")),
    _Rule(r"我(?:这边|这里)?(?:在|是|用)(?P<v>(?:东|西)[一二三四五六七八九十\d]{1,2}区|[A-Z]{2,4}[+-]\d{1,2}"
          r"|(?:美国)?(?:北京|东京|太平洋|美东|美西|东部|西部|欧洲|中欧|格林威治|纽约|伦敦)时间)(?:时区)?",
          _single_zh("timezone")),
    # where
    _Rule(r"(?:我|我家|本人|俺|我们|咱|我们家|我和[^，]{1,6})(?:现在|目前|一直|平时|如今|一个人|自己|常年|就|人"
          r"|和[^，]{1,6}一起|跟[^，]{1,6}一起|也|还|都|暂时){0,3}(?:居?住|定居|常住|家住|居住)(?:在|于)?(?!院|校"
          r"|宿舍|了|过|着|得|嘴|手)(?P<v>[^，]{1,20}?)(?=$|，|了|已经|快|有|这边|，|\d年"
          r"|[一二三四五六七八九十两]年|和|跟|上班|工作|养|做|当|附近)",
          _place_zh("home")),
    _Rule(r"(?:我|本人|俺|我们)(?:现在|目前|一直|常年|如今|人)?(?:在)(?P<v>[^，]{1,14}?)(?:生活|定居|居住|安家"
          r"|长住)(?!过)", _place_zh("home")),
    _Rule(r"(?:我们一家|我们全家|我|我们|我家)(?:刚刚?|最近|上周|上个月|去年|前年|今年|已经|终于|现在|前几天"
          r"|\d{4}年|昨天|前阵子|不久前)*(?:搬家?到|搬来|搬去|移居到?|移民到?|定居到?)了?(?P<v>[^，]{2,12}?)(?:来"
          r"|去)?(?=$|，|了|住|生活|工作|这边|已经)",
          _place_zh("home")),
    _Rule(rf"我家(?:就)?在(?P<v>(?:{_PLACE_WORDS}|{_COUNTRIES_ZH})[^，]{{0,6}})(?=$|，)",
          _place_zh("home")),
    _Rule(r"(?:我)?(?:坐标|现居|base|常住地|居住地|所在城市|现住|人在)(?:是|在|：|:)?(?P<v>[^，]{2,12})$",
          _place_zh("home")),
    _Rule(rf"我(?:现在|目前|人){{1,2}}在(?P<v>{_PLACE_WORDS}|{_COUNTRIES_ZH})$", _place_zh("home")),
    _Rule(r"(?:我|俺|本人|我们|我们家)(?:是|也是|其实是|老家是|就是)?(?:个)?(?:来自"
          r"|从(?=[^，]{1,10}来的))(?P<v>[^，]{2,14}?)(?:来的|的)?(?=$|，|，|今年|现在|目前|在|住)",
          _place_zh("hometown")),
    _Rule(r"(?:我|俺|本人|我们)(?:的)?(?:老家|家乡|籍贯|故乡|祖籍)(?:就?是|在|：|:)(?:在)?(?P<v>[^，]{2,14}?)"
          r"(?:的)?(?=$|，|现在|目前|但)", _place_zh("hometown")),
    _Rule(r"(?:我|俺|本人)(?:是|从小|一直|出生|生|土生土长|小时候|就|是从小)*(?:在|于)(?P<v>[^，]{2,12}?)(?:出生"
          r"|长大|土生土长)(?:的|并长大|和长大|、长大)?",
          _place_zh("hometown")),
    _Rule(r"(?:我|俺|本人)(?:出生|生)(?:在|于)(?!\d)(?P<v>[^，]{2,12}?)(?=$|，|长大|，|的)",
          _place_zh("hometown")),
    _Rule(rf"(?:我|俺|本人)(?:也|就|其实)?是(?:个|一个|地道的?|土生土长的?|正宗的?)?(?P<v>(?:{_PLACE_WORDS})(?:省"
          rf"|市)?(?:{_PLACE_WORDS})?(?:市)?|[\u3400-\u9fff]{{1,4}}[省市县区镇])人(?=$|，|现在|目前|在|但|不过)",
          _place_zh("hometown")),
    # health
    _Rule(rf"(?:我|俺|本人){_ADV_ZH}对(?P<v>[^，]{{1,24}}?){_ADV_ZH}(?:会|有)?{_ADV_ZH}过敏",
          _several_zh("allergy")),
    _Rule(rf"(?:我|俺|本人){_ADV_ZH}有(?:严重的?|很严重的|轻微的?|点)?(?P<v>[^，性]{{1,12}}?)过敏(?:症)?(?!性)",
          _several_zh("allergy")),
    _Rule(rf"(?:我|俺|本人){_ADV_ZH}一?吃(?P<v>[^，]{{1,12}}?)(?:就|会|都会|就会|容易){{0,2}}(?:严重)?过敏",
          _several_zh("allergy")),
    _Rule(r"(?:我|俺|本人)(?P<v>(?:花生|海鲜|牛奶|鸡蛋|坚果|花粉|尘螨|青霉素|头孢|芒果|虾|螃蟹|酒精|小麦|大豆|猫毛"
          r"|狗毛|紫外线|乳糖|麸质|桃子|菠萝|[^，]{1,4}))(?:严重|重度|会)?过敏$",
          _several_zh("allergy")),
    _Rule(r"(?:我|俺|本人)的?过敏原是(?P<v>[^，]{1,24})", _several_zh("allergy")),
    _Rule(rf"(?:我|俺|本人|我们){_ADV_ZH}(?:是|吃|在吃|坚持|开始|改|转|当|做|奉行|保持|属于|算){{0,3}}(?:个|一个"
          rf"|一名|位)?(?:长期)?(?:吃)?(?P<v>纯素食?|全?素食?|蛋奶素|鱼素|清真|生酮|低碳|无麸质|低糖|弹性素食"
          rf"|奶素)(?:主义)?(?:者|饮食|食物|食品|的|餐|了\d+年|很久了|好几年了|的人)?(?=$|，|了|所以|，|好|快|已经"
          rf"|\d|[一二三四五六七八九十两])",
          lambda g, _: [_Pair("diet", {"素": "素食", "纯素食": "纯素"}.get(g["v"], g["v"]))]),
    _Rule(r"(?:我|俺|本人)(?:从来|从小|平时|一直|都|是|也|真的)*不(?:能)?吃(?P<v>牛肉|猪肉|羊肉|鸡肉|肉|红肉|海鲜"
          r"|鱼|辣|辣的|辣椒|鸡蛋|奶制品|麸质|甜食|糖|内脏|葱|蒜|姜|香菜|牛羊肉|生冷|坚果|面食|油炸的?|荤)(?:的"
          r"|食物)?(?=$|，|了|，|所以|和|、)",
          lambda g, _: [_Pair("diet", f"不吃{g['v']}")]),
    _Rule(rf"(?:我|俺|本人){_ADV_ZH}(?:患有|患了|得了|有|确诊了?|被确诊为?|被诊断(?:为|出|出了|有|出有)|查出了?"
          rf"|查出有|得过|检查出|天生|先天|是|刚|刚刚|最近|去年|刚被){{1,3}}(?:轻微的?|轻度的?|严重的?|重度的?"
          rf"|中度的?|点|很严重的|一点|慢性的?|家族性)?(?P<v>{_CONDITIONS_ZH})(?:患者"
          rf"|人)?(?:和(?P<w>{_CONDITIONS_ZH}))?",
          lambda g, _: [_Pair("condition", v) for v in (g["v"], g.get("w", "")) if v]),
    _Rule(rf"(?:我|俺|本人){_ADV_ZH}(?P<v>{_CONDITIONS_ZH}|失聪|失明)(?:\d+度)?(?=$|，|了|的)",
          _single_zh("condition")),
    # work
    _Rule(rf"(?:我|俺|本人)(?:现在|目前|如今|主业|平时|也|其实|就|还){{0,3}}(?:是|在?当|做|担任"
          rf"|干)(?:的是)?(?:一名|一个|一位|个|名|位|在读|普通|一枚|枚|苦逼)*(?P<v>[^，的我]{{0,8}}?"
          rf"(?:{_JOBS_ZH}))(?:的)?(?=$|，|了|，|在|\d|已经|今年|住|和|兼|工作|[（(]|来自|现在|目前|喜欢)", _job_zh),
    _Rule(rf"(?:我|俺|本人)(?:现在|目前|平时)?在(?P<e>[^，]{{2,20}}?)(?:当|做|担任|是|任)(?:一名|一个|个|名|一位"
          rf"|着)?(?P<v>[^，的]{{0,8}}?(?:{_JOBS_ZH}))(?:的)?(?=$|，|了|工作)",
          _job_zh),
    _Rule(r"(?:我|俺|本人)的?(?:工作|职业|本职|主业|本职工作|岗位)(?:就?是|：|:)(?:一名|一个|个|名|做"
          r"|当)?(?P<v>[^，]{2,14}?)(?:的|工作)?(?=$|，|，)",
          _single_zh("occupation", refuse=
        r"很|忙|累|无聊|枯燥|简单|难|你|轻松|辛苦|稳定|什么|远程")),
    _Rule(r"(?:我|俺|本人)(?:现在|目前|是|一直|主要)*(?:从事|做|搞|干)(?P<v>(?!梦|饭|菜|完|了|到|好|不|事|错|过|爱"
          r"|人|个|运动|什么|作业|家务|题|这|那|实验|噩梦|核酸|手术|志愿|决定|ppt|PPT|得"
          r"|一)[^，我你]{1,10}?)(?:这一?行|行业|工作|方面的?|相关的?|领域|开发的|的)(?=$|，|的|工作)",
          _single_zh("occupation", refuse=r"错|梦|你")),
    _Rule(r"(?:我|俺|本人)(?:已经|现在|都)?(?P<v>退休)(?:了|在家)?(?=$|，|好|很|\d|[一二三四五六七八九十])",
          _single_zh("occupation")),
    _Rule(r"(?:我|俺|本人|我们)(?:现在|目前|一直|平时|刚|刚刚|就|也)?在(?P<v>[^，]{1,20}?)(?:上班|工作|任职|就职"
          r"|打工|实习|供职)(?!的时候|时|过)", _employer_zh),
    _Rule(r"(?:我|俺|本人)(?:现在|目前|刚|刚刚|上个月|上周|去年|已经|最近)?(?:就职于|任职于|供职于|入职了?|加入了?"
          r"|跳槽到了?|受雇于|效力于)(?P<v>[^，]{2,20}?)(?:工作)?(?=$|，|了|，|做|当|公司$)", _employer_zh),
    _Rule(r"(?:我|我们)的?(?:公司|单位|东家|雇主)(?:名字)?(?:是|叫做?)(?P<v>[^，]{2,16})", _employer_zh),
    _Rule(r"(?:我|俺|本人)(?:现在|目前|还|正)?(?:就读于|在读|考上了?|毕业于|读的是)(?P<s>[^，]{2,20}?(?:大学|学院"
          r"|中学|高中|一中|附中|学校|大))(?:的)?(?P<v>[^，，]{2,10}?)?(?:专业|系)?(?=$|，)", _studies_zh),
    _Rule(r"(?:我|俺|本人)(?:现在|目前|还|正)?在(?P<s>[^，]{2,16}?(?:大学|学院|中学|高中|一中|附中|大"
          r"|学校)?)(?:读书|上学|念书|读大学|读研|读博|留学|读本科|上大学|学习|念大学|就读|读|学|念)(?P<v>(?!书"
          r"|大学|习|研|博|院)[^，]{2,10}?)?(?:专业|系)?(?:的)?(?=$|，)",
          _studies_zh),
    _Rule(r"(?:我|俺|本人)(?:现在|目前|还|正)?是(?P<s>[^，]{2,14}(?:大学|学院)|清华|北大|复旦|交大|浙大|南大|人大"
          r"|中大|武大|同济|港大|台大|中科大)(?:的)?(?P<w>[^，]{0,8})(?:学生|研究生|博士生|本科生"
          r"|大[一二三四](?:学生)?)(?=$|，|，)",
          _school_zh),
    _Rule(r"(?:我|俺|本人)的?专业(?:就?是|：|:)(?P<v>[^，]{2,14})", _studies_zh),
    _Rule(r"(?:我|俺|本人)(?:是|大学|本科|研究生|现在|目前|最近|正|在|硕士|博士|一直|自|也|还|大学里){0,4}(?:主修"
          r"|攻读|学习|在学|学的是|读的是|念的是|学(?=[^，]{2,8}(?:的|专业)$)|自学|在读|读(?=[^，]{2,8}(?:专业|系"
          r"|的)))(?P<v>[^，]{2,12}?)(?:专业|系)?(?:的)?(?=$|，|，|中|呢)", _studies_zh),
    _Rule(r"(?:我|俺|本人)(?:是|就是|读)(?P<v>[^，的]{2,10}?)(?:专业|系)(?:的|毕业的?|的学生|学生|出身)?(?=$|，)",
          _studies_zh),
    _Rule(rf"(?:我|俺|本人)(?:最近|正|现在|目前|在)+(?:在)?学(?P<v>(?:{_LANGUAGES_ZH}|钢琴|吉他|编程|画画|游泳"
          rf"|法律|医|python|Python|Java|开车|书法|小提琴|跳舞|摄影|烘焙|心理学|设计|会计)[^，]{{0,6}})$",
          _studies_zh),
    # pets and relations
    _Rule(rf"(?:我|我家|我们家?|俺|家里|本人|我们)(?:里)?(?:现在|最近|刚|刚刚|还|也|目前|新|一共|前几天|上个月"
          rf"|去年|今年|最近刚|里){{0,3}}(?:养了|养着|养|有|领养了|收养了|捡了|买了|多了|来了){_QI}(?P<a>(?!人"
          rf"|朋友|问题)[^，叫。]{{0,8}}?(?:{_ANIMALS_ZH}))(?:(?:，|,)?(?:它)?(?:名字|名)?(?:叫做?"
          rf"|是)(?P<v>[^，]{{1,16}}))?(?=$|，|，|了|，|和|，|一|、|还)", _pet_zh),
    _Rule(rf"(?:我|我家|我们家|俺|本人)(?:里)?(?:养|养了|有养|也养|养着)(?P<a>(?:{_ANIMALS_ZH}))(?=$|，|的|了)",
          _pet_zh),
    _Rule(rf"(?:我家?|我们家?|俺家?|我家里)的?(?:那只|那条|这只|一只|狗子)?(?P<a>[^，我你他她有叫养喜欢爱]{{0,4}}?"
          rf"(?:{_ANIMALS_ZH}))(?:的)?(?:名字|小名)?(?:叫做?|名叫|是叫|是(?<=名字是))(?P<v>[^，]{{1,12}}?)(?=$|，"
          rf"|今年|，)", _pet_zh),
    _Rule(rf"(?:我|俺|我们|咱)(?:家)?的?(?:大|小|二|亲|双胞胎|未来|前任"
          rf"|现任)?(?P<r>{_RELATION_ZH})(?:的)?(?:的名字)?(?:也)?(?:名字|小名|大名|名)?(?:叫做?|名叫|名字叫"
          rf"|是叫)(?P<v>[^，]{{1,20}}?)(?=$|，|今年|在|是|住|，|\d)", _relative_zh),
    _Rule(rf"(?:我|俺|我们)(?:家)?的?(?P<r>{_RELATION_ZH})(?:的)?名字?是(?P<v>[^，]{{1,12}})",
          _relative_zh),
    _Rule(rf"(?:我|俺|我们)(?:家)?的?(?P<r>{_RELATION_ZH})是(?P<v>(?:[小老阿][\u3400-\u9fff]{{1,2}}"
          rf"|[{_SURNAMES}][\u3400-\u9fff]{{1,2}}|[A-Z][a-z]+))$",
          lambda g, t: [] if re.search(rf"[人生员师的手子]$|(?:{_JOBS_ZH})", _simple(g["v"])) else _relative_zh(g, t)),
    _Rule(rf"(?:我|俺|我们|我家|家里)(?:还|也|家|们)?有(?:一|两|二|三|1|2|3|俩)?(?:个|位|对)?(?:可爱的|很好的"
          rf"|双胞胎|小|大|亲|\d{{1,2}}岁的|[一二三四五六七八九十]{{1,2}}岁的|刚出生的)?(?P<r>{_RELATION_ZH})(?:，"
          rf"|,)?(?:分别|名字|名|她|他)?(?:叫做?|名叫)(?P<v>[^，]{{1,20}}?)(?=$|，|今年)", _relative_zh),
    _Rule(rf"(?:我|俺|我们|我家)(?:还|也|家)?有(?:一|两|二|三|1|2|3|俩)?(?:个|位|对)(?:可爱的|双胞胎|小|大"
          rf"|亲)?(?P<r>{_RELATION_ZH})(?=$|，)",
          lambda g, _: [_Pair(_RELATIONS_ZH[_simple(g["r"])], "", unnamed=True)]),
    _Rule(rf"(?:我|俺)(?:家)?的?(?P<r>{_RELATION_ZH})(?:也|现在|目前)?(?:是|做|当)(?:一名|一个|一位|个|名|位"
          rf"|做)?(?P<v>[^，我你]{{0,8}}?(?:{_JOBS_ZH}))(?:的)?$", _relative_is_zh),
    _Rule(rf"(?:我|俺)(?:家)?的?(?P<r>{_RELATION_ZH})(?:现在|目前|也|今年)?(?P<v>(?:住在"
          rf"|在)[^，你我]{{2,12}}(?:工作|上班|读书|上学|留学)?|对[^，]{{1,10}}过敏|(?:今年)?(?:\d{{1,2}}"
          rf"|[一二三四五六七八九十]{{1,3}})岁|有(?:{_CONDITIONS_ZH}))(?:了)?$",
          lambda g, t: _kin_does_zh(g, t) if not re.search(
        r"^在(?!.*(?:工作|上班|读书|上学|留学)$)|家$|医院$|这里$|旁边$|路上$",
        _simple(g["v"])) else []),
    # tastes
    _Rule(r"(?:我|俺|本人)(?:个人)?最(?:喜欢|爱|喜爱|中意|钟爱)(?:吃|看|听|读|喝|玩)?的(?P<k>[^，是]{1,6}?)(?:一直"
          r"|永远|还|就|当然|肯定|应该)*(?:是|：|:|有)(?P<v>[^，]{1,30})", _favourite_zh),
    _Rule(r"(?P<v>[^，我你]{1,14})(?:永远|一直|绝对|当然)?是我(?:个人)?最(?:喜欢|爱|喜爱)(?:吃|看|听|读|喝"
          r"|玩)?的(?P<k>[^，]{1,6}?)(?:之一)?(?=$|，)", _favourite_zh),
    _Rule(rf"(?:我|俺|本人)(?:{_ADV_ZH})(?:不|没那么|没有?很?|不怎么|不太|不是很|不大|一点也不|一点都不|从来不"
          rf"|最不|完全不|并不|实在不)(?:喜欢|爱|喜爱|待见|感冒)(?P<w>吃|喝|看|听)?{_VL}",
          lambda g, t: _several_zh("dislikes")({"v": g.get("w", "") + g["v"]}, t)),
    _Rule(rf"(?:我|俺|本人){_ADV_ZH}(?:讨厌|厌恶|恨|受不了|不能忍受|忍受不了|反感|烦(?=别人|开会|下雨|吵|人多|加班"
          rf"|[^，]{{2}}))(?:被)?{_VL}", _several_zh("dislikes")),
    _Rule(rf"(?:我|俺|本人){_ADV_ZH}对(?P<v>[^，]{{1,16}}?){_ADV_ZH}(?:感兴趣|有兴趣|着迷|上瘾|情有独钟)",
          _several_zh("likes")),
    _Rule(r"(?:我|俺|本人|我们)(?:的|平时的?|最大的?|业余)*(?:爱好|兴趣爱好|兴趣|业余爱好|嗜好)(?:就?是|有|包括|："
          r"|:)(?P<v>[^，]{1,50})", _several_zh("likes")),
    _Rule(r"(?:我|俺|本人)(?:是|也是|可是|就是)(?:一个|个|一枚|资深|铁杆|忠实|超级|狂热|骨灰级|重度|老"
          r"|的)*(?P<v>[^，]{1,12}?)(?:的)?(?:粉丝|爱好者|发烧友|球迷|迷|控|铁粉|粉|党)(?=$|，)",
          lambda g, t: _several_zh("likes")({"v": re.sub("的?(?:铁杆|忠实|超级|资深)$", "", g["v"])}, t)),
    _Rule(rf"(?:我|俺|本人|我们){_ADV_ZH}(?:喜欢|喜爱|热爱|钟爱|酷爱|偏爱|迷上了?|爱上了?|沉迷于?|痴迷于?|中意"
          rf"|好(?=这口))(?P<v>(?!的(?:人|东西|事|是)).{{1,80}}?)(?=$|[。！!（(]|但是?|不过|所以|因为|而且|然后"
          rf"|并且|尤其|特别是|我|胜过|多过|超过)",
          _several_zh("likes")),
    _Rule(rf"(?:我|俺|本人|我们){_ADV_ZH}爱(?P<v>(?!你|他|她|它|我|上|的|过|人|谁|国|着|情|心|因为|这|那|家人|心"
          rf"|理|搭理|干|信不信|咋咋地|去不去).{{1,60}}?)(?=$|[。！!（(]|但是?|不过|所以|因为|而且|然后|并且|尤其"
          rf"|我)", _several_zh("likes")),
    _Rule(rf"(?:比起[^，]{{1,12}}?，?)?(?:我|俺|本人){_ADV_ZH}更?(?:喜欢|偏好|倾向于?){_VL}",
          _several_zh("likes")),
    # what they have and what they are after
    _Rule(r"(?:我|俺|本人|我们|我家)(?:刚|刚刚|最近|上个月|去年|今年|还|也|自己|家|终于|前几天|现在){0,3}(?:有"
          r"|买了|入手了?|拥有|开着?|骑着?|换了|新买了|入了|新入了)(?:一|两|三|1|2|3)?(?:辆|台|部|架|套|把|艘|块"
          r"|支|栋|间|双)(?P<v>[^，我你]{1,16}?)(?=$|，|了|，|叫|\d年)", _owns_zh),
    _Rule(r"(?:我|俺|本人)(?:开的|骑的|的车|用的手机|的手机|的电脑|用的电脑|用的相机|用的)是(?:一)?(?:辆|台"
          r"|部)?(?P<v>[^，我你]{2,16})$", _owns_zh),
    _Rule(r"(?:我|俺|本人)(?:今年|现在|最大|人生|长期|短期|近期|目前|新年|明年|这辈子|的|一直以来|最近|终极"
          r"|唯一){0,4}(?:的)?(?:目标|梦想|愿望|理想|心愿|志向)(?:就?是|：|:)(?:能|能够|想|希望"
          r"|要)?(?P<v>[^，]{2,30})", _goal_zh),
    _Rule(r"(?:我|俺|本人)(?:今年|明年|一直|真的|很|以后|将来|特别|非常|也|还|最近|下半年|未来|总有一天|有朝一日"
          r"|长大|毕业后|退休后|正在?|现在|目前|在){0,4}(?:想要?|希望能?|打算|计划|准备|立志要?|争取|努力|梦想着?"
          r"|决定|立志|决心|要|备战|备考)(?:能|去|在[^，]{2,8}前|今年(?:内|底前)?|三年内|\d年内|年底前|有一天|早日"
          r"|尽快){0,2}(?P<v>(?:学(?:会|好|习)?(?!你|一下|着)[^，]{2,12}|减肥|减重|减到\d|瘦[^，]{1,8}|考(?!虑|察"
          r"|试)[^，]{1,10}|成为[^，]{2,14}|当(?:上)?(?:一名|个|一个)?[^，天时]{2,10}|写(?:一)?(?:本"
          r"|部)[^，]{1,10}|跑(?:完)?(?:一次|一个|个|全程|半程|全|半)?(?:马拉松|半马|全马|马)|攒[^，]{2,12}"
          r"|存[^，]{1,12}|买(?:一?(?:套|辆|栋)|房|车)[^，]{0,10}|戒(?:烟|酒|糖|奶茶)|环游[^，]{1,6}|创业"
          r"|开(?:一)?(?:家|间|个)[^，]{2,10}|移民[^，]{0,6}|出国[^，]{0,6}|留学|拿到[^，]{2,12}|读(?:完)?\d+本书"
          r"|读研|读博|健身|练出[^，]{1,8}|练[^，]{2,8}|转行[^，]{0,8}|升职[^，]{0,6}|早睡[^，]{0,4}"
          r"|提高[^，]{2,10}|雅思[^，]{0,8}|托福[^，]{0,8}|公务员|教资|考研|每天[^，]{2,12}|去[^，]{2,6}(?:留学"
          r"|旅行|定居|看极光)|存够[^，]{2,10}|通过[^，]{2,10}))(?:的)?(?=$|，|了|，|所以)", _goal_zh),
    _Rule(r"(?:我|俺|我们|本人|咱)(?P<v>(?:打算|计划|准备|要|会|得|将|和[^，]{1,5}|跟[^，]{1,5}|已经"
          r"|就){0,3}(?:明天|后天|大后天|下下?(?:个)?(?:周|星期|礼拜)[一二三四五六日天末]?"
          r"|下个?月(?:\d{1,2}[号日])?|明年(?:\d{1,2}月|春天|夏天|秋天|冬天|[一二三四五六七八九十]{1,2}月)?"
          r"|这周[一二三四五六日末]|周[一二三四五六日末]|今年(?:暑假|寒假|夏天|冬天|秋天|春节|国庆|年底)|年底|月底"
          r"|暑假|寒假|国庆|春节|过年|\d{1,2}月(?:\d{1,2}[号日])?|[一二三四五六七八九十\d]{1,2}(?:天|周|个月"
          r"|年)(?:以)?后)(?:的?时候)?(?:早上|上午|下午|晚上|中午)?[^，]{2,30})", _plan_zh),
    _Rule(r"(?P<v>(?:明天|后天|大后天|下下?(?:个)?(?:周|星期|礼拜)[一二三四五六日天末]?|下个?月(?:\d{1,2}[号日])?"
          r"|明年(?:\d{1,2}月)?|这周[一二三四五六日末]|周[一二三四五六日末]|年底|月底|暑假|寒假|国庆|春节|过年"
          r"|\d{1,2}月\d{1,2}[号日]|[一二两三四五六七八九十\d]{1,2}(?:天|周|个星期|个月|年)(?:以)?后)(?:早上|上午"
          r"|下午|晚上|中午)?我(?:们)?(?:打算|计划|准备|要|会|得|将|就要|和|跟|有(?:个|一个|一场))[^，]{2,30})",
          lambda g, t: _plan_zh({"v": g["v"].replace("我们", "", 1).replace("我", "", 1)}, t)),
    _Rule(r"(?:我|俺|我们|本人)(?P<v>(?:打算|计划|准备|决定)(?!给你|跟你|睡|吃|洗|出门|休息)[^，]{3,30})", _plan_zh),
)
# fmt: on

# fmt: off
_REQUESTS_ZH: tuple[_Rule, ...] = (
    _Rule(r"(?:请|你|您|大家|直接|就|都|可以|以后|还是|平时|也可以|不如|改){0,4}(?:叫|喊|称呼|称)我(?:为|作|做"
          r"|一声|的英文名|的小名)?(?P<v>(?!起床|的时候|吃|一下|回|怎么|名字|全名)[^，]{1,16})", _name_zh("called")),
    _Rule(r"(?:请|拜托|求你|你|您|千万|都|再|也|麻烦){0,3}(?:别|不要|不许|不准|禁止|不用|勿|莫|少|避免)(?:再|老是"
          r"|总是|随便|轻易|动不动就?){0,2}(?:跟我|和我|对我|给我|向我|同我|在我面前|当着我的?面?|与我|问我"
          r"|拿我的?|推荐我)?(?:再)?(?:谈论?|聊到?|提起?到?及?|说起|讨论|问起?|讲|开(?=.{1,8}玩笑)|涉及|推荐|八卦"
          r"|催(?=我?婚|我?结婚|生)|评价|评论)(?:我)?(?:任何)?(?:关于|有关|到|起|和|跟)?(?!话|一下|这么|那么|得|太"
          r"|废|客气|多余|表情|脏话|英[语文]|中文|方言|网络|长|大道理|敬语)(?P<v>[^，]{1,20})", _boundary_zh),
    _Rule(r"我(?:真的|实在|现在|一点也?|一点都)?(?:不想|不愿意?|不希望|不喜欢|拒绝|不想再)(?:再)?(?:跟你|和你"
          r"|跟任何人|和别人|被)?(?:谈论?|聊到?|提起?到?|讨论|说起|问起?|讲)(?:到|起|关于|有关)?(?!话"
          r"|一下)(?P<v>[^，]{1,20})", _boundary_zh),
    _Rule(r"(?P<v>[^，我你]{2,12})(?:的话题|的事情?|这个话题|这种话题)(?:请)?(?:别|不要|不许|不准)(?:再)?(?:提|聊"
          r"|谈|说|问)", _boundary_zh),
    _Rule(r"(?P<v>[^，我你]{2,12})(?:的话题)?(?:是我的?(?:雷区|禁区|底线|忌讳|禁忌)|对我来说是(?:敏感|禁忌)话题)",
          _boundary_zh),
)
# fmt: on
_STYLE_ZH = re.compile(
    rf"(?:请|都|要|就|只|多|尽量|直接|统一|一律|最好|麻烦你?){{0,3}}(?:(?:用|说|讲|使用|换成|切换成?|改用"
    rf"|全用)(?:(?:{_LANGUAGES_ZH})(?=$|[吧哦啊就]|回|答|跟|和|与|聊|交流|对话|沟通|说话|来[回聊])|繁体|简体"
    rf"|大白话|通俗|简单|简短|简洁|口语|敬语|轻松|幽默|专业|正式|温柔|书面|文言文|摄氏|公制|公里|列表|markdown"
    rf"|24小时|表格|一句话|短句|英式|美式)|(?:回答|回复|说话|答案|讲话|解释|语气|说|讲|回|答)(?:我|问题|时|的时候"
    rf"|得|内容)?(?:都|要|请|可以|能|尽量|一定要?|务必|得)*(?:再|更|稍微)?(?:用(?:{_LANGUAGES_ZH}|[^，]{{2,6}})"
    rf"|简短|简洁|简单|精简|短|直接|详细|通俗|温柔|正式|随意|轻松|幽默|具体|口语|专业|干脆|精炼|友好|随和|客气"
    rf"|不要|别|不用|控制在|言简意赅|慢|温和|严肃)"
    r"|(?:别|不要|不用|不许|少|停止|请勿|禁止)(?:再|给我|总是|老是|老|总|跟我){0,2}(?:(?:用|使用|发|加|带|说|讲"
    r"|写)(?!了|$|话$|谎)|那么|这么|太|叫我|称呼我|喊我|敷衍|啰嗦|重复|道歉|说教|客套|绕弯子|废话|打官腔|卖萌|夸"
    r"|鸡汤|撒娇|中英)|(?:简短|简洁|简单|直接|精简|言简意赅|详细|具体|温柔|幽默|正式|随意)(?:一?点|一些|些|明了"
    r"|扼要)(?:$|的?回[答复]|就行|就好|吧|哦|啊)|长话短说)"
)
