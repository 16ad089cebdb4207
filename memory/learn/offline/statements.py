"""Reads what people plainly state about themselves, by the templates in a language's `facts.yaml`.

Invariants: pure; time is bounded by the length of the sentence. A template fits a whole clause, from one joint of its
sentence to another, or it is not used: whatever else stands in the clause may mean the opposite. A sentence that asks,
reports, doubts or supposes states nothing. Of a change of mind ("Paris, no wait, Berlin") what follows it counts, if it
fits where the first value stood. In doubt nothing is read: the message stays, and is found and quoted with its day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

from languages import Language, part
from languages.reading import compiled
from memory.keys import RELATIONS, VALUE_LIMIT
from memory.learn.offline.appointments import appointment
from memory.learn.offline.rescheduling import rescheduled
from memory.learn.own_words import HOLE
from memory.text.simplified import simplified
from memory.text.times.spans import spans

#: Longest sentence that is read, in characters, and the most clauses that one template may span.
_LONGEST: Final = 300
_SPAN: Final = 6
#: The most clauses of a sentence that are read: more are no sentence.
_CLAUSES: Final = 16
#: The most words of a part of a list that is surely no clause of its own.
_FEW: Final = 3
#: A blank between Chinese and Latin characters; one between Chinese characters parts clauses.
_BESIDE_HAN: Final = re.compile(r"(?<=[\u3400-\u9fff]) (?=[A-Za-z])|(?<=[A-Za-z]) (?=[\u3400-\u9fff])")
_ASKS: Final = re.compile(r"[?？]\s*$")
_NUMBER: Final = re.compile(r"\d+(?: |$)")
_PLACEHOLDER: Final = re.compile(r"(?<!P)<(\w+)>")
#: Templates are read without accents, which many leave out.
_FOLD: Final = str.maketrans("áàâäéèêëíìîïóòôöúùûüñç", "aaaaeeeeiiiioooouuuunc")
_FOLD_TEXT: Final = _FOLD | {ord(chr(sign).upper()): ord(chr(plain).upper()) for sign, plain in _FOLD.items()}
#: The placeholders for lists, and what else shows that a template goes over a joint.
_MANY: Final = re.compile(r"<(?:m|names|anynames|tongues)>")
_WIDE: Final = re.compile(r"<(?:m|names|anynames|tongues|town)>|[,:，、：]| (?:and|or|und|y|et) ")
_SYNTAX: Final = re.compile(r"\(\?[\w-]*:|\{\d*,\d*\}")
#: The characters that no value of one clause holds.
_WITHIN: Final = r"[^,;:!?…()、。，！？（）；：\n]"
#: The keys after which a number alone is an age: "I'm Marta, 29".
_BEFORE_AGE: Final = frozenset({"name", "called"})
#: Keys whose templates say themselves which words a value has.
_CLOSED: Final = frozenset({"diet", "condition", "speaks", "goal", "birthday", "height", "timezone"})
#: Keys whose phrases go on with an article, which is no part of other values: "you work at a garden centre".
_ARTICLED: Final = frozenset({"likes", "dislikes", "employer"})
#: Keys whose values are names of persons.
_NAMED: Final = RELATIONS | {"name", "called"}
#: A title that a sentence ends with at its dot: "Mr. Harding".
_TITLE: Final = re.compile(r"(?:mrs?|ms|dr|prof|herr|frau|hr|sra?|mme|mlle)\.?", re.IGNORECASE)
#: Keys of those of whom the next clause may speak.
_KIN: Final = RELATIONS | {"pet"}
#: The keys of what a template states besides its own value, by the names of its groups.
_BESIDE: Final = {"e": "employer", "s": "studies", "t": "hometown", "h": "home", "x": "dislikes"}
#: Keys of requests, which a polite question may make.
_REQUESTS: Final = frozenset({"called", "boundary"})
_SHOUT: Final = re.compile(r"\b[A-ZÀ-ÖØ-Þ]{4,}\b")
#: What people don't laugh about if it is true of them.
_EARNEST: Final = frozenset({"allergy", "condition", "age"})


class Stated(NamedTuple):
    """A fact that a clause states, as it was written."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Template:
    """A form of statement. Without a key its group `who` names a relative. A `wide` one goes over joints of a sentence;
    one with `many` values holds a list. A `whole` one fits the words that end a clause, too.
    """

    key: str
    says: re.Pattern[str]
    wide: bool
    many: bool
    whole: bool
    greeted: bool


@dataclass(frozen=True, kw_only=True)
class _Grammar:
    """The templates of a language and what surrounds them.

    `joint` parts clauses; `opening` and `closing` are words at their edges that state nothing, `contrast` the denied
    value at the end of one ("not Bristol"). `refuse` fits sentences that state nothing, `asks` the beginning of a
    clause that asks, `turn` a change of mind, `instead` the words before the value that follows one, `remember` a
    request to note the rest, `polite` the beginning of a question that requests. `carried` are subjects that a clause
    may leave out after one about the speaker, `having` what one about a second relative leaves out, `bare` the first
    clauses that leave it out. Where clauses have no subject at all, `subject` fits those that do. `oneself` fits
    clauses about the speaker that no template reads, `others` clauses about somebody else. No value holds `crooked`,
    unless it is a name in a group `called` ("Will"); `refused` are further words by key.
    """

    code: str
    unspaced: bool
    simplifies: bool
    joint: re.Pattern[str]
    opening: re.Pattern[str]
    closing: re.Pattern[str]
    contrast: re.Pattern[str]
    refuse: re.Pattern[str]
    asks: re.Pattern[str]
    turn: re.Pattern[str]
    instead: re.Pattern[str]
    remember: re.Pattern[str]
    polite: re.Pattern[str]
    tag: re.Pattern[str]
    greeting: re.Pattern[str]
    laughs: re.Pattern[str]
    unsure: re.Pattern[str]
    carried: tuple[str, ...]
    having: str
    bare: re.Pattern[str]
    subject: re.Pattern[str] | None
    oneself: re.Pattern[str]
    others: re.Pattern[str]
    crooked: re.Pattern[str]
    refused: Mapping[str, re.Pattern[str]]
    several: re.Pattern[str]
    trim: re.Pattern[str]
    article: re.Pattern[str]
    most: int
    plural: re.Pattern[str]
    relatives: Mapping[str, str]
    favourites: Mapping[str, str]
    templates: tuple[_Template, ...]

    @cached_property
    def wide(self) -> tuple[_Template, ...]:
        return tuple(template for template in self.templates if template.wide)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A clause that a template fits: its place in the sentence, the value's place in it, and what it states."""

    start: int
    end: int
    value: tuple[int, int]
    facts: tuple[Stated, ...]


@dataclass(slots=True)
class CarriedSubject:
    """Who the clauses read so far were about: True for the speaker, False for others; None before the first."""

    carried: bool | None = None
    last_key: str = ""


def statements(sentence: str, code: Language, today: date, speaker: CarriedSubject) -> list[Stated]:
    """Returns what a sentence, said on `today`, states of the speaker; empty if it is not plain."""
    grammar = _grammar(code)
    text = _BESIDE_HAN.sub("", " ".join(sentence.replace("’", "'").split()))
    if not text or len(text) > _LONGEST:
        return []
    asked = _ASKS.search(text) is not None
    text = text.rstrip(" .!?。！？…~～;；")
    told = grammar.remember.match(text)
    if told is not None and not asked:
        return _noted(text[told.end() :], grammar, today, speaker)
    polite = grammar.polite.match(text) if asked else None
    if polite is not None:
        read = _read(text[polite.end() :], grammar, today, speaker, asked=False)
        return [fact for one in read for fact in one.facts if fact.key in _REQUESTS]
    if grammar.refuse.search(_plain(text, grammar)):
        speaker.carried = False
        return []
    laughs = grammar.laughs.search(text) is not None
    shouts = _SHOUT.search(text)
    facts = [fact for one in _turned(text, grammar, today, speaker, asked=asked) for fact in one.facts]
    unsure = grammar.unsure.search(text) is not None
    facts = [fact for fact in facts if not ((laughs and fact.key in _EARNEST) or (unsure and fact.key == "plan"))]
    if shouts is not None and not text.isupper():  # "I LOVE the railway" is said of a train that is late
        facts = [fact for fact in facts if fact.key != "likes" or shouts[0] in fact.value]
    if grammar.turn.search(_plain(text, grammar)) is None and not any(fact.key == "plan" for fact in facts):
        planned = appointment(sentence, code=code, today=today)
        facts += [Stated("plan", planned)] if planned else []
    return facts


def _noted(rest: str, grammar: _Grammar, today: date, speaker: CarriedSubject) -> list[Stated]:
    """Returns what a person asks to remember: the facts that it states, or else their words."""
    rest = rest.strip(" ,:，：")
    facts = [fact for one in _turned(rest, grammar, today, speaker, asked=False) for fact in one.facts]
    if any(fact.key != "plan" for fact in facts) or not _keepable(rest):
        return facts
    return [Stated("note", rest)]


def _turned(text: str, grammar: _Grammar, today: date, speaker: CarriedSubject, *, asked: bool) -> list[_Reading]:
    """Reads a sentence. Of one with a change of mind, the last clause before it gets the value that follows it."""
    turns = list(grammar.turn.finditer(_plain(text, grammar)))
    if not turns:
        return _read(text, grammar, today, speaker, asked=asked)
    before, after = text[: turns[0].start()].rstrip(" ,，、-–—…."), text[turns[-1].end() :]
    first = replace(speaker)
    read = _read(before, grammar, today, speaker, asked=False)
    last = read[-1] if read and read[-1].end == len(before) else None
    kept = read[:-1] if last else read
    if last is not None and last.facts and not asked:
        for changed in _changed(before, after, last, grammar, today):
            again = _read(changed, grammar, today, replace(first), asked=False)[len(kept) :]
            if again and again[0].facts and again[0].facts[0].key == last.facts[0].key:
                return kept + again
    return kept + _read(after, grammar, today, CarriedSubject(carried=False), asked=asked)


def _changed(before: str, after: str, last: _Reading, grammar: _Grammar, today: date) -> Iterator[str]:
    """Yields the readings of a change of mind: each is the text `before` with words of `after` for its last value."""
    first, end = _strip(after, grammar)
    key = last.facts[0].key
    if key == "plan":
        moved = rescheduled(before[last.start :], after[first:end], told=today, today=today)
        if moved is not None:
            yield before[: last.start] + moved.plan
        return
    lead = grammar.instead.match(_plain(after, grammar), first, end)
    named = lead is not None and lead["name"] is not None
    value = after[lead.end() if lead is not None else first : end]
    # "No, it's raining" is no colour, and "his name is Max" none either.
    if (named and key not in _NAMED | _KIN) or grammar.refused["instead"].search(_plain(value, grammar)):
        return
    if key in _CLOSED or not before[last.value[0]].isupper() or value[:1].isupper():
        for words in (value, grammar.trim.sub("", value)):
            yield before[: last.value[0]] + words + before[last.value[1] :]


def _read(text: str, grammar: _Grammar, today: date, speaker: CarriedSubject, *, asked: bool) -> list[_Reading]:
    """Reads the clauses of a text from the first on, each with as many of the next as one template takes."""
    plain = _plain(text, grammar)
    clauses = _clauses(plain, grammar)[:_CLAUSES]
    if asked:
        first = next((n for n, (start, end) in enumerate(clauses) if grammar.asks.match(plain, start, end)), -1)
        clauses = (
            [] if clauses and grammar.tag.match(plain, *_strip_in(plain, clauses[-1], grammar)) else clauses[:first]
        )
    found: list[_Reading] = []
    place = 0
    while place < len(clauses):
        start, end = clauses[place]
        taken = 1
        reading = None
        for count in range(min(_SPAN, len(clauses) - place), 0, -1):
            end = clauses[place + count - 1][1]
            reading = _clause(text, plain, start, end, grammar, today, speaker, wide=count > 1)
            if reading is not None:
                taken = count
                break
        if reading is not None:
            found.append(reading)
            speaker.last_key = reading.facts[0].key if reading.facts else ""
            speaker.carried = speaker.last_key not in _KIN | {"boundary"}
        elif grammar.asks.match(plain, start):
            break
        else:
            own = grammar.oneself.match(plain, start) is not None and not grammar.others.search(plain, start, end)
            if own or grammar.others.search(plain, start, end) or grammar.subject is None:
                speaker.carried = own
            speaker.last_key = ""
        place += taken
    return found


def _strip_in(plain: str, clause: tuple[int, int], grammar: _Grammar, *, whole: bool = False) -> tuple[int, int]:
    start, end = clause
    first, last = _strip(plain[start:end], grammar, whole=whole)
    return start + first, start + last


def _clauses(plain: str, grammar: _Grammar) -> list[tuple[int, int]]:
    ends = [match.span() for match in grammar.joint.finditer(plain)]
    starts = [0, *(end for _, end in ends)]
    return [
        (a, b) for a, b in zip(starts, [*(start for start, _ in ends), len(plain)], strict=True) if plain[a:b].strip()
    ]


def _clause(
    text: str, plain: str, start: int, end: int, grammar: _Grammar, today: date, speaker: CarriedSubject, *, wide: bool
) -> _Reading | None:
    """Reads a clause, or several as one, as it stands and with the subject that it leaves out."""
    folded = plain.translate(_FOLD_TEXT)
    # "Je n'aime pas le thé" ends like "I live in Bath, not Bristol".
    for stripped, b in dict.fromkeys(_strip_in(plain, (start, end), grammar, whole=whole) for whole in (True, False)):
        subject = grammar.subject.match(plain, stripped, b) if grammar.subject is not None else None
        of_others = grammar.subject is not None and subject is None and speaker.carried is False
        a = subject.end() if subject is not None else stripped
        for form in _forms(plain[a:b], grammar, speaker):
            for template in grammar.wide if wide else grammar.templates:
                if (form and not _is_carried(template.key, speaker)) or (of_others and template.key):
                    continue
                if template.greeted and not grammar.greeting.match(plain, start, a):
                    continue
                match = template.says.fullmatch(form + folded[a : end if template.whole else b])
                if match is None:
                    continue
                shift = a - len(form)
                facts = _facts(template, match, text, shift, grammar, today)
                if facts or _is_joke(template, match, grammar):
                    group = next((name for name in ("v", "w", "n") if match.groupdict().get(name)), 0)
                    first, last = match.span(group)
                    return _Reading(start=start, end=end, value=(first + shift, last + shift), facts=tuple(facts))
    return None


def _is_carried(key: str, speaker: CarriedSubject) -> bool:
    # A name is only believed if the words before it were really said. "I have a brother named Tom and a sister".
    return key in ("", "pet") if speaker.last_key in _KIN else key != "name"


def _forms(clause: str, grammar: _Grammar, speaker: CarriedSubject) -> tuple[str, ...]:
    """Returns what may be put before a clause: nothing, and the subjects that it may leave out."""
    if speaker.last_key in _KIN:
        return ("", grammar.having)
    carried = speaker.carried or (speaker.carried is None and grammar.bare.match(clause) is not None)
    is_age = _NUMBER.match(clause) is None or speaker.last_key in _BEFORE_AGE
    return ("", *grammar.carried) if carried and is_age and grammar.subject is None else ("",)


def _strip(plain: str, grammar: _Grammar, *, whole: bool = False) -> tuple[int, int]:
    """Returns the bounds of a clause without the words around it that state nothing.

    What the speaker denies at its end ("not Bristol") stays if the `whole` clause is wanted.
    """
    start, end = 0, len(plain)
    while True:
        edges = plain[start:end]
        start += len(edges) - len(edges.lstrip(" -–—:*~"))
        end -= len(edges) - len(edges.rstrip(" -–—:*~.!"))
        opened = grammar.opening.match(plain, start, end)
        if opened and start < opened.end() < end:
            start = opened.end()
            continue
        closed = grammar.closing.search(plain, start, end)
        if closed is None and not whole:
            closed = grammar.contrast.search(plain, start, end)
        if closed is None or closed.start() <= start or closed.end() != end or closed.start() == end:
            return start, max(start, end)
        end = closed.start()


def _facts(
    template: _Template, match: re.Match[str], text: str, shift: int, grammar: _Grammar, today: date
) -> list[Stated]:
    """Returns what a fitting clause states; empty if any of its values is crooked."""

    def written(name: str) -> str:
        start, end = match.span(name) if match.groupdict().get(name) else (-1, -1)
        return match[name] if 0 <= start < -shift else text[max(start + shift, 0) : max(end + shift, 0)]

    groups = {name for name, value in match.groupdict().items() if value}
    key = template.key
    if "who" in groups:
        key = grammar.relatives.get(match["who"].casefold(), "")
    elif "thing" in groups:
        thing = match["thing"].casefold()
        key = f"favourite-{grammar.favourites.get(thing, thing)}"
    said = next((written(name) for name in ("v", "w", "n") if name in groups), "")
    kind = "occupation" if "w" in groups else "person" if "animal" in groups or key in _NAMED else key
    refused = grammar.refused.get(kind)
    if not (key and (template.many or refused is None or refused.search(_plain(said.strip(), grammar)) is None)):
        return []
    values = grammar.several.split(said) if template.many else [said]
    if len(values) > 1 and not _is_list(said, values, grammar):
        return []
    articles = [_article(one, key, grammar) for one in values]
    values = [(one if key == "plan" else grammar.trim.sub("", one.strip())).strip(" '\"“”.,") for one in values]
    facts = [Stated(key, value) for value in values]
    if "animal" in groups:
        animal = grammar.plural.sub("", written("animal")) if said else written("animal")
        facts = [Stated(key, f"{animal} {value}" if value else animal) for value in values]
    if "d" in groups:
        day = written("d")
        articles = [""]
        facts = [Stated(key, f"{said} {day if day.endswith('day') and ' ' not in day else day[:1].lower() + day[1:]}")]
    for name, other in _BESIDE.items():
        if name in groups:
            facts.append(Stated(other, grammar.trim.sub("", written(name).strip())))
            articles.append(_article(written(name), other, grammar))
    called = "called" in groups
    whole = all(_is_plain(fact, kind if fact.key == key else fact.key, grammar, today, called=called) for fact in facts)
    with_articles = [Stated(fact.key, words + fact.value) for fact, words in zip(facts, articles, strict=True)]
    return with_articles if whole else []


def _article(words: str, key: str, grammar: _Grammar) -> str:
    match = grammar.article.match(words.strip()) if key in _ARTICLED else None
    return match[0] if match else ""


def _is_joke(template: _Template, match: re.Match[str], grammar: _Grammar) -> bool:
    """Returns whether a list names what nobody can be allergic to, which makes a joke of the rest of it, too."""
    if template.key != "allergy":
        return False
    parts = grammar.several.split(match["v"] or "")
    return any(grammar.refused["allergy"].search(part) is not None for part in parts if len(part.split()) <= _FEW)


def _is_list(said: str, values: list[str], grammar: _Grammar) -> bool:
    """Returns whether words are a list: one "and" before its last part, or nothing but single words."""
    signs = [match.group().strip(" ,，、") for match in grammar.several.finditer(said)]
    return (not any(signs[:-1]) and bool(signs[-1])) or all(" " not in value.strip() for value in values)


def _is_plain(fact: Stated, kind: str, grammar: _Grammar, today: date, *, called: bool) -> bool:
    """Returns whether a value is one of its key: short, without words of another clause, a plan with a day to come."""
    if not fact.key or not _keepable(fact.value) or _TITLE.fullmatch(fact.value):
        return False
    if fact.key == "age":
        return not fact.value.isdecimal() or 5 <= int(fact.value) <= 110
    refused = grammar.refused.get(kind)
    plain = _plain(fact.value, grammar)
    if fact.key in _CLOSED:
        return not (refused and refused.search(plain))
    if fact.key == "plan":
        days = spans(fact.value, today, looks="ahead", language=grammar.code)
        return (
            any(not span.vague and span.last >= today for span in days)
            and grammar.refused["plan"].search(fact.value) is None
        )
    size = len(plain) if grammar.unspaced else len(plain.split())
    crooked = None if called else grammar.crooked.search(plain)
    return size <= grammar.most and crooked is None and not (refused and refused.search(plain))


def _keepable(value: str) -> bool:
    return 0 < len(value) <= VALUE_LIMIT and HOLE not in value and any(sign.isalnum() for sign in value)


def _plain(text: str, grammar: _Grammar) -> str:
    """Returns a text as templates read it, character for character."""
    return simplified(text) if grammar.simplifies else text


@cache
def _grammar(code: Language) -> _Grammar:
    data: dict[str, Any] = part(code, "facts")["statements"]
    kin = {key: words.translate(_FOLD).split() for key, words in data["relatives"].items()}
    relatives = {word.replace("_", " "): key for key, words in kin.items() for word in words}
    favourites = {thing.translate(_FOLD): key for thing, key in data["favourites"].items()}
    words = {
        "relatives": f"(?:{_either(relatives)})",
        "v": rf"(?P<v>{_WITHIN}{{1,60}}?)",
        "e": rf"(?P<e>{_WITHIN}{{1,50}}?)",
        "c": "[^,，、;!]",
        "m": r"(?P<v>[^;:!?…()。！？（）；：\n]{1,160}?)",
        **data.get("words", {}),
        "relative": f"(?P<who>{_either(relatives)})",
        "kinds": data["animals"],
        "animal": f"(?P<animal>{data['animals']})",
        "thing": f"(?P<thing>{_either(favourites)})",
    }

    def pattern(source: str, accents: Mapping[int, int] | None = None) -> re.Pattern[str]:
        while _PLACEHOLDER.search(source):
            source = _PLACEHOLDER.sub(lambda slot: f"(?:{words[slot[1]]})", source)
        return re.compile(source.translate(accents or {}), re.IGNORECASE)

    return _Grammar(
        code=code,
        **compiled(
            _Grammar, {**data, "closing": f"(?:{data['closing']})$", "contrast": f"(?:{data['contrast']})$"}, pattern
        ),
        carried=tuple(data.get("carried", ())),
        having=data.get("having", ""),
        subject=pattern(data["subject"]) if "subject" in data else None,
        refused={key: pattern(source) for key, source in data["refused"].items()},
        most=data["most"],
        unspaced=data.get("unspaced", False),
        simplifies=data.get("simplifies", False),
        relatives=relatives,
        favourites=favourites,
        templates=tuple(
            _template(key, source, pattern(source, _FOLD))
            for key, sources in data["says"].items()
            for source in sources
        ),
    )


def _template(key: str, source: str, says: re.Pattern[str]) -> _Template:
    return _Template(
        key={"relatives": "", "favourite": "", "greeted": "name"}.get(key, key),
        greeted=key == "greeted",
        says=says,
        wide=_WIDE.search(_SYNTAX.sub("", source)) is not None,
        many=_MANY.search(source) is not None,
        # The words that end a clause may be the day of a plan; "Priya here" is a name, 健太が none.
        whole=key == "plan" or (key == "name" and re.search("です| here$|btw", source) is not None),
    )


def _either(words: Any) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))
