"""Tells small talk, questions about memory and statements apart, for the agent without a model.

Invariants: pure. A message that asks for anything else as well is no small talk. A question without a word to search by
asks for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Final

from agents.llm import Remembered
from agents.offline.speech import Asks, Speech

#: Splits text into the words that are compared; the same for questions and for what was said.
Tokens = Callable[[str], Sequence[str]]
#: Longest message that is taken for small talk, in characters.
_SOCIAL: Final = 80
#: Longest message in which a part may show small talk, and the most kinds of it that are answered.
_TALK: Final = 160
_KINDS: Final = 2
#: Words of a greeting that may end in a question mark.
_GREETING: Final = 3
_EDGES: Final = " .!?¡¿。！？…~～,，:;)（(\"'“”"
_CLAUSE: Final = re.compile(r"[,，、]")
#: Characters that may follow the sign or the word that shows a question.
_TRAILING: Final = " …~～〜)）"
#: A word of a script that is written without blanks.
_UNSPACED: Final = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]")
#: The least common beginning of two forms of a word: in characters, and as a share of the longer one.
_STEM: Final = 5
_STEM_SHARE: Final = 0.6
#: A word too long, or with an accent, to be an empty word if its stem has at most `_SHORT_STEM` letters: "té" is tea.
_LONGER: Final = re.compile(r"[^\W\d_]{4,}|\w*[à-öø-ÿ]\w*")
_SHORT_STEM: Final = 2
_NAME: Final = re.compile(r"(?<=[a-z,;] )[A-ZÀ-Þ][\w'-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question about something told before.

    `words` are its tokens that carry meaning, `pieces` those of each word; an answer must hold the `musts` among them,
    which name persons. `light` are those that an answer need not hold: the kind of thing asked for, as in "which
    instrument", which an answer names itself, and words such as "get" and "place". `asks` is the form that asks for
    facts by key, and `rest` are the words beside that form. `about` is the name in "what do you know about …". With
    `everything` the question asks for all that is known of the person.
    """

    text: str
    words: frozenset[str]
    pieces: tuple[frozenset[str], ...] = ()
    musts: frozenset[str] = frozenset()
    light: frozenset[str] = frozenset()
    asks: Asks | None = None
    rest: frozenset[str] = frozenset()
    about: str = ""
    everything: bool = False
    yes_no: bool = False
    before: bool = False


def social(text: str, speech: Speech) -> tuple[str, ...]:
    """Returns the names of the small talk that a message consists of; none for any other message."""
    said = speech.read(text)
    if len(said.strip(_EDGES)) <= _SOCIAL:
        hello, *rest = _CLAUSE.split(said.strip(_EDGES), maxsplit=1)
        greeted = rest and _whole(hello, speech) == "greeting"
        whole = _whole(said, speech) or (greeted and _whole(rest[0], speech))
        if whole:
            return (whole,)
    if len(said) > _TALK or speech.everything.search(said) or any(one.pattern.search(said) for one in speech.asks):
        return ()
    kinds = []
    for sentence in speech.split(said) or [said]:
        kind = next((name for name, form in speech.talk if form.search(sentence)), "")
        # "Hey, what does he want?" asks; "hello?" greets.
        asks = not kind or (kind == "greeting" and len(sentence.split()) > _GREETING)
        if asks and is_question(sentence, speech):
            return ()
        kinds.append(kind)
    return tuple(dict.fromkeys(filter(None, kinds)))[:_KINDS]


def _whole(said: str, speech: Speech) -> str:
    bare = said.strip(_EDGES)
    return next((name for name, form in speech.social.items() if form.fullmatch(bare)), "")


def asks_plans(text: str, speech: Speech) -> bool:
    said = speech.read(text)
    return (
        len(said) <= _SOCIAL
        and speech.agenda.search(said.strip(_EDGES)) is not None
        and not asks_what_was_said(text, speech)
    )


def asks_what_was_said(text: str, speech: Speech) -> bool:
    """Returns whether a message asks what was talked about, of late or in a time that it names."""
    return speech.talked.search(speech.read(text).strip(_EDGES)) is not None


def is_question(text: str, speech: Speech) -> bool:
    return speech.question.search(speech.tag.sub("", speech.read(text).rstrip(_TRAILING))) is not None


def asked(text: str, speech: Speech, tokens: Tokens) -> AskedQuestion | None:
    """Returns the last question of a message; None if it asks nothing."""
    said = speech.read(text)
    found = [one for one in speech.split(said) if is_question(one, speech)]
    if not found:
        return None
    asking = found[-1]
    for form, to in speech.rewrites:
        asking = form.sub(to, asking)
    if speech.everything.search(asking):
        return AskedQuestion(text=asking, words=frozenset(), everything=True)
    light = _light(asking, speech, tokens)
    pieces = _pieces(asking, speech, tokens)
    words = (frozenset().union(*pieces) | light) or _meaning(asking, speech, tokens)
    light |= _kind(asking, speech, tokens) & words
    about = speech.about.search(asking)
    asks = next((one for one in speech.asks if one.pattern.search(asking)), None)
    rest = ""
    if asks is not None:
        match = asks.pattern.search(asking)
        assert match is not None
        rest = (
            asking[match.end() :]
            + " "
            + "".join(filter(None, (match.groupdict().get(name) for name in ("kind", "kind2"))))
        )
    return AskedQuestion(
        text=asking,
        words=words,
        pieces=tuple(pieces),
        musts=words
        & (_relations(asking, speech, tokens) | (_names(asking, tokens) if speech.capitals else frozenset())),
        light=light,
        asks=asks,
        rest=content(rest, speech, tokens),
        about=next(filter(None, about.groups()), "").strip(_EDGES) if about is not None and asks is None else "",
        yes_no=speech.yes_no.search(asking) is not None,
        before=speech.before.search(asking) is not None,
    )


def content(text: str, speech: Speech, tokens: Tokens) -> frozenset[str]:
    return frozenset().union(*_pieces(text, speech, tokens))


def _pieces(text: str, speech: Speech, tokens: Tokens) -> list[frozenset[str]]:
    """Returns the tokens of each word of `text` with a meaning; scripts without blanks are cut at known words."""
    text = speech.read(text)
    if speech.particles:
        known = _unspaced(_known(speech))
        found = known.findall(text) if known is not None else []
        left = known.sub(" ", text) if known is not None else text
        pieces = [_meaning(piece, speech, tokens) for piece in (*found, *speech.particles.sub(" ", left).split())]
        return list(filter(None, pieces))
    return _content(speech.cut.sub(" ", text), speech, tokens) or _content(text, speech, tokens)


def _content(text: str, speech: Speech, tokens: Tokens) -> list[frozenset[str]]:
    empty = _unspaced(speech.empty)
    if empty is None:
        return [frozenset({token}) for token in _full(text, speech, tokens)]
    known = _unspaced(_known(speech))
    found = known.findall(text) if known is not None else []
    left = known.sub(" ", text) if known is not None else text
    pieces = [frozenset(_pairs(tokens(piece))) for piece in (*found, *empty.split(left))]
    return list(filter(None, pieces))


def _known(speech: Speech) -> str:
    """Returns the words whose ends are known: names of relations, and longer words with others of their meaning."""
    longer = [word for words in (*speech.alike, *speech.kinds.values()) for word in words.split() if len(word) > 1]
    return " ".join([speech.relations, *longer])


def held(text: str, speech: Speech, tokens: Tokens) -> frozenset[str]:
    """Returns the tokens of `text` and of the words that mean the same as words of it."""
    found, groups = frozenset(tokens(text)), _groups(speech.alike, tokens)
    return found.union(*(group for token in found for word, group in groups.get(token, ()) if word <= found))


def known_by(fact: Remembered, speech: Speech, tokens: Tokens) -> frozenset[str]:
    # "Like" asks for no dislike, and "cat" for no dog.
    cues = "" if fact.key in ("dislikes", "pet") else fact.cues
    return held(f"{fact.key} {fact.value} {speech.kinds.get(fact.key, '')} {cues}", speech, tokens)


@lru_cache(maxsize=16)
def _groups(alike: tuple[str, ...], tokens: Tokens) -> Mapping[str, Sequence[tuple[frozenset[str], frozenset[str]]]]:
    """Returns by one token of each word the word's tokens, and those that any word of its group stands for."""
    groups: dict[str, list[tuple[frozenset[str], frozenset[str]]]] = {}
    for words in alike:
        same, _, kinds = words.partition(">")
        each = [frozenset(tokens(word.replace("_", " "))) for word in words.replace(">", "").split()]
        group = frozenset().union(*each[: len((same or kinds).split())])
        for word in filter(None, each):
            groups.setdefault(max(word), []).append((word, group))
    return groups


def lacking(words: frozenset[str], said: frozenset[str], *, inflected: bool) -> frozenset[str]:
    """Returns the `words` that are not said, apart (抽烟: 抽了很多烟) or `inflected` (ensayo: ensayamos) either."""
    return frozenset(
        word
        for word in words
        if word not in said
        and not _said_apart(word, said)
        and not (inflected and any(_same_beginning(word, one) for one in said))
    )


def _same_beginning(one: str, other: str) -> bool:
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return same >= _STEM and same >= _STEM_SHARE * max(len(one), len(other))


def _said_apart(word: str, said: frozenset[str]) -> bool:
    return _UNSPACED.match(word) is not None and said.issuperset(word)


def _relations(text: str, speech: Speech, tokens: Tokens) -> frozenset[str]:
    if _unspaced(speech.relations) is None:
        return _tokens_of(speech.relations, tokens)
    return frozenset(token for one in _relations_in(text, speech) for token in _pairs(tokens(one)))


def _relations_in(text: str, speech: Speech) -> list[str]:
    relations = _unspaced(speech.relations)
    return relations.findall(text) if relations is not None else []


def _pairs(found: Sequence[str]) -> list[str]:
    return [token for token in found if len(token) > 1 or token.isascii()] or list(found)


def _meaning(text: str, speech: Speech, tokens: Tokens) -> frozenset[str]:
    found = _full(text, speech, tokens)
    pairs = frozenset(token for token in found if len(token) > 1 or token.isascii())
    return pairs or found


def _full(text: str, speech: Speech, tokens: Tokens) -> frozenset[str]:
    """Returns the tokens of `text` but for empty words; "Ines" stays, though its stem "in" looks like one."""
    listed = speech.empty.split()
    longer = (tokens(word) for word in _LONGER.findall(text) if word.casefold() not in listed)
    kept = frozenset(found[0] for found in longer if len(found) == 1 and len(found[0]) <= _SHORT_STEM)
    return frozenset(tokens(text)) - (_tokens_of(speech.empty, tokens) - kept)


def _light(text: str, speech: Speech, tokens: Tokens) -> frozenset[str]:
    found = frozenset(tokens(text))
    each = (tokens(word) for word in speech.light.split())
    return frozenset(token for word in each if found.issuperset(word) for token in _pairs(word))


def _kind(text: str, speech: Speech, tokens: Tokens) -> frozenset[str]:
    match = speech.kind.search(text)
    return frozenset(tokens(match["kind"])) if match is not None else frozenset()


def _names(text: str, tokens: Tokens) -> frozenset[str]:
    return frozenset(token for name in _NAME.findall(text) for token in tokens(name.removesuffix("'s")))


@lru_cache(maxsize=1_024)
def _tokens_of(words: str, tokens: Tokens) -> frozenset[str]:
    return frozenset(token for word in words.split() for token in tokens(word))


@lru_cache(maxsize=16)
def _unspaced(words: str) -> re.Pattern[str] | None:
    found = sorted(filter(_UNSPACED.search, words.split()), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, found))) if found else None
