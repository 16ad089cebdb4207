"""Reads the language files of the agent without a model: how people ask, and what it says. Each has a `talk.yaml`.

Invariants: a file is read when its language is first spoken. All patterns ignore case and are read over text whose
blanks are single spaces and whose apostrophes are straight; Chinese ones over simplified characters, without blanks
beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import yaml

from languages import LANGUAGES, part, source
from languages.reading import compiled

_BESIDE_HAN: Final = re.compile(r"(?<=[\u3400-\u9fff]) | (?=[\u3400-\u9fff])")
#: Languages that their script shows. Japanese comes first, since it has Chinese characters, too.
_SCRIPTS: Final = (("ja", re.compile(r"[\u3041-\u30ff]")), ("zh", re.compile(r"[\u3400-\u9fff]")))
#: Brings the characters of a text into one form, each into one.
OneForm = Callable[[str], str]
#: Cuts a text into sentences, each with the signs that end it.
Split = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """A form of question that asks for facts by their keys.

    "relation" and "favourite" in `keys` stand for all keys of these families. With `no` a yes-or-no question is denied
    by a fact under these keys. With `object` the words after the pattern narrow down which facts are meant. A fact's
    value must fit `value`, where that is given.
    """

    pattern: re.Pattern[str]
    keys: frozenset[str]
    no: frozenset[str] = frozenset()
    object: bool = False
    value: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """A form of question, and what its answer must hold: a time, a place, a number or a name."""

    ask: re.Pattern[str]
    hold: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """One language. `texts` are the agent's sentences.

    `social` are forms of small talk by name, and fit a whole message; `talk` are forms that a part of a sentence shows,
    in the order of their weight. Each of `alike` holds words that mean the same, or after ">" a kind of it, `kinds` the
    words that ask for a key. `cut` fits words of a question that an answer need not say; `rewrites` turn a way of
    asking into another. `tag` fits words that make a statement sound like a question, as in "lovely, isn't it?".
    `kind` fits the kind of thing that is asked for; `light` are words that an answer need not hold if it holds others.
    `refers` fits messages that speak of something named in the one before, `changed` those which say that something
    said before holds no more and `contradicts` the beginning of those which say that it is not so, `own` questions
    about the person who asks, `personal` those about that person's life and people, `agenda` those about plans for
    certain days, `talked` those about earlier talks, `grief` news of a loss, `other` sentences about other people. A
    question that fits `before` is answered by sentences that fit `past`; `was` turns the beginning of a fact into the
    past tense. With `capitals` a capital letter within a sentence shows a name; the words of an `inflected` language
    have many endings. `particles` are letters that separate the words of an unspaced script.
    """

    code: str
    empty: str
    relations: str
    kinds: Mapping[str, str]
    cut: re.Pattern[str]
    capitals: bool
    inflected: bool
    particles: re.Pattern[str] | None
    question: re.Pattern[str]
    tag: re.Pattern[str]
    alike: tuple[str, ...]
    rewrites: tuple[tuple[re.Pattern[str], str], ...]
    social: Mapping[str, re.Pattern[str]]
    talk: tuple[tuple[str, re.Pattern[str]], ...]
    everything: re.Pattern[str]
    about: re.Pattern[str]
    asks: tuple[Asks, ...]
    needs: tuple[Needs, ...]
    changed: re.Pattern[str]
    contradicts: re.Pattern[str]
    own: re.Pattern[str]
    personal: re.Pattern[str]
    agenda: re.Pattern[str]
    talked: re.Pattern[str]
    grief: re.Pattern[str]
    other: re.Pattern[str]
    yes_no: re.Pattern[str]
    kind: re.Pattern[str]
    light: str
    refers: re.Pattern[str]
    before: re.Pattern[str]
    past: re.Pattern[str]
    was: Mapping[str, str]
    texts: Mapping[str, str]
    simplified: OneForm
    split: Split

    def read(self, text: str) -> str:
        one_form = plain(text)
        return _BESIDE_HAN.sub("", self.simplified(one_form)) if self.code == "zh" else one_form

    def in_script_of(self, text: str) -> Speech:
        """Returns the language that the script of `text` shows, if this language is written in another."""
        code = next((code for code, script in _SCRIPTS if script.search(text)), "en")
        spaced = code == "en" and self.code not in ("zh", "ja")
        return self if spaced or code == self.code else speech(code, self.simplified, self.split)


class _Loader(yaml.CSafeLoader):
    """Joins the lines of a folded pattern without blanks: a line that continues one begins with its bar."""


def _string(loader: _Loader, node: yaml.ScalarNode) -> str:
    text = str(loader.construct_scalar(node))
    return text.replace(" |", "|") if node.style == ">" else text


_Loader.add_constructor("tag:yaml.org,2002:str", _string)


@cache
def speech(code: str, simplified: OneForm, split: Split) -> Speech:
    if code not in LANGUAGES:
        code = "en"
    data: dict[str, Any] = yaml.load(source(code, "talk"), Loader=_Loader)  # noqa: S506 - a safe loader
    relation = "(?:" + "|".join(map(re.escape, data["relations"].split())) + ")"

    def pattern(source: str) -> re.Pattern[str]:
        return re.compile(source.replace("RELATION", relation), re.IGNORECASE)

    contradicts = part(code, "facts")["contradicts"]
    return Speech(
        **compiled(Speech, {"personal": "", "past": "", "contradicts": contradicts} | data, pattern),
        code=code,
        empty=data["empty"],
        relations=data["relations"],
        kinds=data.get("kinds", {}),
        capitals=data.get("capitals", True),
        inflected=data.get("inflected", False),
        particles=pattern(data["particles"]) if "particles" in data else None,
        social={name: pattern(source) for name, source in data["social"].items()},
        alike=tuple(data.get("alike", ())),
        rewrites=tuple((pattern(source), to) for source, to in data.get("rewrites", ())),
        talk=tuple((one["kind"], pattern(one["says"])) for one in data.get("talk", ())),
        asks=tuple(_asks(row, pattern) for row in data["asks"]),
        needs=tuple(Needs(ask=pattern(one["ask"]), hold=pattern(one["hold"])) for one in data["needs"]),
        light=data.get("light", ""),
        was=data.get("was", {}),
        texts=data["texts"],
        simplified=simplified,
        split=split,
    )


def _asks(row: Mapping[str, Any], pattern: Callable[[str], re.Pattern[str]]) -> Asks:
    return Asks(
        pattern=pattern(row["ask"]),
        keys=frozenset(row["keys"]),
        no=frozenset(row.get("no", ())),
        object=row.get("object", False),
        value=pattern(row["value"]) if "value" in row else None,
    )


def plain(text: str) -> str:
    return " ".join(text.replace("’", "'").split())
