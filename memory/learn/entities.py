"""Finds names in English and Chinese text by patterns: people, organizations, places, projects, addresses.

Invariants: pure and linear in the text. Every name found stands in the text as written. The longest of overlapping
spans wins, then the surest. A capital alone is no name at the start of a sentence or in a text all in capitals; days,
months, languages and the like are no names, nor is the verb with which an entry begins ("Hiked", "Ordered a cake").
Missing a name is better than keeping a wrong one: recall has words for the rest.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import structlog

from languages.reading import shipped
from memory import keys
from memory.child import command, environment
from memory.learn import spacy_names
from memory.store.entities import Named, Type, stands_in

log = structlog.get_logger(__name__)

#: Finds the names in each of some texts.
Reads: TypeAlias = Callable[[Sequence[str]], list[list[Named]]]

#: Characters read of one text, and names kept of it.
READ_CHARS: Final = 50_000
NAMES_LIMIT: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A name at `text[start:end]`. `sure`, from 0 (a capital) to 3 (an address), decides between equally long spans."""

    start: int
    end: int
    type: Type
    sure: int


def extract(text: str) -> list[Named]:
    """Returns the names in `text`, each once, in order.

    Reads the first `READ_CHARS` characters and returns at most `NAMES_LIMIT` names.
    """
    text = text[:READ_CHARS]
    found = ((span.type, text[span.start : span.end]) for span in _longest(_spans(text)))
    return _distinct(Named(type=kind, name=" ".join(name.split())) for kind, name in found)


def of_fact(key: str, value: str, *, subject: str = "") -> list[Named]:
    """Returns the names in a fact. Its value may be a bare name that the key gives a type ("employer" → organization).

    `subject` is the fact's subject in words; words that merely describe ("my sister", "a doctor") are no name.
    """
    found = [Named(type="person", name=subject)] if _is_name(subject) else []
    kind = _type_of_key(key)
    if kind == "other" and _is_verb(value.split(maxsplit=1)[0] if value.strip() else ""):
        return _distinct([*found, *extract(value)])
    if _is_name(value) and (kind != "other" or value.isascii()):  # 喝茶 looks like a Chinese name but is none
        return _distinct([*found, Named(type=kind, name=value.strip(" .。"))])
    return _distinct([*found, *extract(value)])


def standing(found: Iterable[Named], text: str) -> list[Named]:
    """Returns the names in `found`, each once, that stand in `text` as whole words and are no everyday word.

    For names that a model returns, which may be made up: a name that no text holds could not be forgotten with it.
    """
    names = (Named(type=named.type, name=" ".join(named.name.split())) for named in found)
    return _distinct(
        named
        for named in names
        if named.normal not in _COMMON
        and (named.type == "person" or not _is_verb(named.name))
        and stands_in(named.name, text)
    )


def trained() -> Reads | None:
    return by_spacy if spacy_names.is_installed() else None


def is_latin(text: str) -> bool:
    letters = [char for char in text[:_LOOKED_AT] if char.isalpha()]
    latin = sum(char <= "\u024f" for char in letters)
    return latin > 0 and latin >= 0.9 * len(letters)


def by_spacy(texts: Sequence[str]) -> list[list[Named]]:
    """Returns the names in English texts by a trained model, for the night: slower and finer than `extract`.

    Needs the extra `remora[entities]`. Runs in a process of its own, which takes some 1.5 s to start. After that, a
    text of 100 characters takes 3 ms, one of 2,000 characters 100 ms. If the process fails, there are no names.
    """
    given = json.dumps([text[:READ_CHARS] for text in texts]).encode()
    try:
        done = subprocess.run(  # noqa: S603 - our own module, by the running Python
            command(spacy_names.__name__), input=given, capture_output=True, check=True, timeout=_SPACY_SECONDS,
            env=environment(),
        )  # fmt: skip
        answer: list[list[tuple[str, str]]] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        log.warning("entities.spacy_failed", error=type(error).__name__, texts=len(texts))
        answer = [[] for _ in texts]
    return [
        # Keeps only names that stand in the text, whatever the answer's origin.
        standing((Named(type=_SPACY[label], name=name) for label, name in names if label in _SPACY), text)
        for text, names in zip(texts, answer, strict=True)
    ]


#: The characters of a text by which its script is recognised.
_LOOKED_AT: Final = 2_000
#: Seconds for all texts of a night, the start included.
_SPACY_SECONDS: Final = 120.0
#: The OntoNotes labels that are names; numbers, dates and nationalities are not.
_SPACY: Final[dict[str, Type]] = {
    "PERSON": "person", "ORG": "organization", "GPE": "location", "LOC": "location", "FAC": "location",
    "PRODUCT": "other", "EVENT": "other", "WORK_OF_ART": "other",
}  # fmt: skip


def _distinct(found: Iterable[Named]) -> list[Named]:
    kept: dict[str, Named] = {}
    for named in found:
        known = kept.get(named.normal)
        if named.normal and (known is None or (known.type == "other" and named.type != "other")):
            kept[named.normal] = named
    return list(kept.values())[:NAMES_LIMIT]


def _longest(spans: Iterable[_Span]) -> list[_Span]:
    """Returns the spans that win among overlapping ones, in order; each overlapping cluster is settled by itself."""
    kept: list[_Span] = []
    cluster: list[_Span] = []
    reach = 0
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if span.start >= reach:
            kept += _settled(cluster)
            cluster = []
        cluster.append(span)
        reach = max(reach, span.end)
    return kept + _settled(cluster)


def _settled(cluster: list[_Span]) -> list[_Span]:
    kept: list[_Span] = []
    for span in sorted(cluster, key=lambda span: (span.start - span.end, -span.sure)):
        if all(span.end <= other.start or span.start >= other.end for other in kept):
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)


def _spans(text: str) -> Iterator[_Span]:
    for pattern, kind, sure in _MARKED:
        for match in pattern.finditer(text):
            start, end = match.span("name")
            if kind == "url":
                end -= len(match["name"]) - len(match["name"].rstrip(".,;:!?'\"）)】"))
            if end > start:
                yield _Span(start=start, end=end, type=kind, sure=sure)
    yield from _quoted(text)
    yield from _capitalised(text)


_HAN = r"[\u4e00-\u9fff]"
_SURNAMES = (
    "王李张張刘劉陈陳杨楊赵趙黄黃周吴吳徐孙孫胡朱高林何郭马馬罗羅梁宋郑鄭谢謝韩韓唐冯馮于董萧蕭程曹袁邓鄧许許傅沈曾彭吕呂苏蘇"
    "卢盧蒋蔣蔡贾賈丁魏薛叶葉阎余潘杜戴夏钟鐘汪田任姜范方石姚谭廖邹熊金陆郝孔崔康毛邱秦江史顾侯邵孟龙段雷钱汤尹黎武乔贺赖龚"
)
_TITLE_ZH = "医生|醫生|老师|老師|教授|先生|女士|小姐|经理|經理|律师|阿姨|叔叔|博士|师傅|总监|主任|校长"
_URL = r"(?<![A-Za-z0-9_@])(?P<name>(?:https?://|www\.)[^\s<>\"'，。；！？、（）【】《》「」]{3,2000})"
_EMAIL = r"(?<![A-Za-z0-9_.+-])(?P<name>[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,6})"
_MENTION = r"(?<![A-Za-z0-9_@./-])(?P<name>@[A-Za-z_][A-Za-z0-9_]{1,31})(?![A-Za-z0-9_]|[@.][A-Za-z0-9])"
# A colour (#ffcc00) or an issue (#12) is no tag.
_TAG = r"(?<![A-Za-z0-9_#&/])(?P<name>#(?![0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?\b)[^\W\d_][\w-]{0,63})"
_BOOK_ZH = r"《(?P<name>[^《》\n]{1,40})》"
_CALLED_ZH = rf"(?:名叫|名为|叫做|叫作|我叫|他叫|她叫|昵称是|名字是)(?P<name>[{_SURNAMES}]{_HAN}{{1,2}})(?!{_HAN})"
_TITLED_ZH = rf"(?P<name>[{_SURNAMES}](?:{_TITLE_ZH}))"
_FAMILIAR_ZH = (
    rf"(?<!{_HAN})(?P<name>[老小阿][王李张刘陈杨赵周吴徐孙胡朱林何郭罗])"
    r"(?=[说問问是在去来和跟给的也要有把让想喜，。！？、\s]|$)"
)
_ORGANIZATION_ZH = (
    r"(?:[在去到从于进]|加入|离开|来自)"
    rf"(?P<name>(?:(?![在去到从于进自的了着过和跟一那这哪]){_HAN}){{2,10}}?"
    r"(?:公司|集团|大学|学院|医院|银行|研究院|研究所|事务所|中学|小学))"
)
_PLACE_ZH = (
    r"(?:住在|搬到|搬去|来自|出生在|生活在|定居|老家在|老家是)"
    rf"(?P<name>(?:(?![的了着过和跟在一那这哪家里边面]){_HAN}){{2,6}}?)(?=[，。！？、；\s了的和读上工旅玩]|$)"
)
_PATTERNS: Final[tuple[tuple[str, Type, int], ...]] = (
    (_URL, "url", 3),
    (_EMAIL, "email", 3),
    (_MENTION, "person", 2),
    (_TAG, "other", 2),
    (_BOOK_ZH, "other", 2),
    (_CALLED_ZH, "person", 1),
    (_TITLED_ZH, "person", 2),
    (_FAMILIAR_ZH, "person", 1),
    (_ORGANIZATION_ZH, "organization", 1),
    (_PLACE_ZH, "location", 1),
)
_MARKED: Final = tuple((re.compile(pattern), kind, sure) for pattern, kind, sure in _PATTERNS)

_KINDS_ZH = "项目|公司|团队|乐队|品牌|餐厅"
#: A name in quotes has a word before or after it that marks it as a name; quotes alone hold speech.
_QUOTED: Final = re.compile(
    rf"(?P<cue>(?:(?:{_KINDS_ZH})的?(?:名字)?)?(?:叫|名为|名叫|称为|绰号|昵称|外号|店名|{_KINDS_ZH}|called|named"
    r"|nicknamed|project))\s?"
    r"[“「『\"](?P<name>[^“”「」『』\"\n，。！？,.!?]{1,30})[”」』\"]"
    rf"(?P<after>{_KINDS_ZH}| project| team)?",
    re.IGNORECASE,
)


def _quoted(text: str) -> Iterator[_Span]:
    for match in _QUOTED.finditer(text):
        said = f"{match['cue']} {match['after'] or ''}".lower()
        kind: Type = "other"
        if "项目" in said or "project" in said:
            kind = "project"
        elif any(word in said for word in ("公司", "团队", "乐队", "品牌", "餐厅", "店名", "team")):
            kind = "organization"
        yield _Span(start=match.start("name"), end=match.end("name"), type=kind, sure=2)


# Capitalised names --------------------------------------------------------------------------------------------------

_WORD = r"[A-ZÀ-ÖØ-Þ][A-Za-z0-9À-ɏ&'’-]{0,40}"
_LINK = r"(?: (?:of|de|da|del|la|van|von|der|den|bin|al|the)){1,2}"
#: Up to seven capitalised words, with small words of names between them.
_RUN: Final = re.compile(
    rf"(?<![A-Za-z0-9À-ɏ_@#/.'’-])(?:(?:Dr|Mr|Mrs|Ms|Prof|St|Mt)\. )?{_WORD}(?:(?:{_LINK})? {_WORD}){{0,6}}"
)
_TITLES: Final = ("Dr. ", "Mr. ", "Mrs. ", "Ms. ", "Prof. ", "Dr ", "Mr ", "Mrs ", "Ms ", "Professor ", "Sir ")
_START_MARKS: Final = frozenset('.!?…:;"“”‘(（「『*>•-–—|。！？：；\n')
_BEFORE: Final = 40


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_COMMON, _VERBS, _NO_VERBS, _ORGANIZATION, _LOCATION = (
    _set(words) for words in shipped("memory.learn", "names.yaml").values()
)


#: The mark before an entry of a list, and pronouns before a verb.
_ENTRY: Final = re.compile(
    r"(?:(?:^|\n)\s*(?:\d{1,3}|[a-zA-Z])[.)]|[,;)]|\b(?:i|we|he|she|they|you|and|then))\s*$", re.I
)
_AT_WORK = (
    "work(?:s|ed|ing)? (?:at|for)|job at|hired by|intern(?:ed|ing)? at|employed (?:by|at)|join(?:s|ed|ing)?"
    "|stud(?:y|ies|ied|ying) at|graduated from"
)
_TO_PLACE = (
    "liv(?:e|es|ed|ing) in|mov(?:e|es|ed|ing) (?:back )?to|travel(?:s|ed|led|ing|ling)? to|trips? to|fl(?:y|ew|ying) to"
    "|born in|based in|grew up in|(?:vacation|holiday) in|i['’]?m from|comes? from|(?:went|going|drove|back) to"
    "|visit(?:ed|ing)?|near|stay(?:ed|ing)? in"
)
_OF_PERSON = (
    "(?:friend|sister|brother|mother|father|mom|mum|dad|wife|husband|partner|son|daughter|boss|manager|colleague"
    "|coworker|roommate|neighbou?r|cousin|aunt|uncle|teacher|girlfriend|boyfriend|fianc[eé]e?|niece|nephew)"
    "(?: is| named| called|,)?|name is|named|married(?: to)?|call me|met|told|asked|dating"
)
_CUE_WORDS: Final[tuple[tuple[str, Type], ...]] = (
    (_AT_WORK, "organization"),
    (_TO_PLACE, "location"),
    (_OF_PERSON, "person"),
    ("project|repo|repository|codenamed?", "project"),
)
#: Words right before a name that tell its type.
_CUES: Final = tuple(
    (re.compile(rf"(?<![A-Za-z])(?:{words}) (?:the )?$", re.IGNORECASE), kind) for words, kind in _CUE_WORDS
)
_CUES_ZH: Final[tuple[tuple[re.Pattern[str], Type], ...]] = (
    (
        re.compile(
            r"(?:朋友|同事|同学|老板|邻居|妻子|丈夫|老婆|老公|[男女]友|姐姐|妹妹|哥哥|弟弟|[妈爸]{2})(?:叫|是)?$"
        ),
        "person",
    ),
    (re.compile(r"(?:住在|搬到|搬去|来自)$"), "location"),
)
_WORK_ZH: Final = re.compile(r"(?:工作|上班|实习|读书|上学)")
_SAYS: Final = re.compile(
    r"(?:['’]s (?:sister|brother|mother|father|mom|dad|wife|husband|birthday|son|daughter)"
    r"| (?:said|says|told|asked|thinks|likes|loves|called|texted|lives|works))(?![A-Za-z])"
)
_PROJECT_AFTER: Final = re.compile(r" (?:project|repo|repository)(?![A-Za-z])", re.IGNORECASE)


def _capitalised(text: str) -> Iterator[_Span]:
    if _shouts(text):
        return
    runs = [span for match in _RUN.finditer(text) for span in _trimmed(text, match.start(), match.end())]
    inside = {text[start:end] for start, end in runs if not _starts_sentence(text, start)}
    for start, end in runs:
        kind = _kind(text, start, end)
        words = text[start:end].split()
        # At the start of a sentence every word has a capital, so a name there needs more evidence than that.
        if (
            len(words) == 1
            and kind == "other"
            and _starts_sentence(text, start)
            and words[0] not in inside
            and not any(char.isupper() for char in words[0][1:])
            and not any(char.isdigit() for char in words[0])
        ):
            continue
        yield _Span(start=start, end=end, type=kind, sure=0 if kind == "other" else 1)


def _shouts(text: str) -> bool:
    letters = [c for c in text[:400] if c.isascii() and c.isalpha()]
    return len(letters) > 12 and sum(c.isupper() for c in letters) > 0.6 * len(letters)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields the parts of a run of capitalised words that are left without common words and possessive endings."""
    words = [(m.start() + start, m.end() + start) for m in re.finditer(r"\S+", text[start:end])]
    part: list[tuple[int, int]] = []
    for (word_start, word_end), (after, after_end) in pairwise([*words, (end, end), (end, end)]):
        word = text[word_start:word_end]
        bare = word.lower().replace("’", "'").removesuffix("'s")
        if not word or bare in _COMMON or bare.split("'")[0] in _COMMON or bare.endswith("n't"):
            yield from _part(text, part)
            part = []
            continue
        before = text[max(0, word_start - _BEFORE) : word_start]
        begins = _starts_sentence(text, word_start) or _ENTRY.search(before) is not None
        if not part and _is_verb(word) and begins and not _SAYS.match(text, word_end):
            continue
        part.append((word_start, word_end))
        # "Anna's" ends a name, but not in "St. Mary's Hospital".
        if word.replace("’", "'").endswith(("'s", "'")) and text[after:after_end].lower() not in _ORGANIZATION:
            yield from _part(text, part)
            part = []


def _part(text: str, part: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    while part and text[part[0][0]].islower():
        part = part[1:]
    while part and text[part[-1][0]].islower():
        part = part[:-1]
    if not part:
        return
    start, end = part[0][0], part[-1][1]
    name = text[start:end]
    end -= len(name) - len(re.sub(r"['’]s?$|[-&'’]+$", "", name))
    if end - start > 1:
        yield start, end


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 8) : start].rstrip(" \t")
    return not before or before[-1] in _START_MARKS


def _is_verb(word: str) -> bool:
    folded = word.casefold()
    if folded in _VERBS:
        return True
    return len(word) > 3 and word[1:].islower() and word.isalpha() and word.endswith("ed") and folded not in _NO_VERBS


def _kind(text: str, start: int, end: int) -> Type:
    name, before = text[start:end], text[max(0, start - _BEFORE) : start]
    last = name.rsplit(" ", 1)[-1].lower()
    if name.startswith(_TITLES):
        return "person"
    if last in _ORGANIZATION or name.startswith(("University of ", "Bank of ", "Ministry of ")):
        return "organization"
    if last in _LOCATION or name.startswith(("Mt. ", "Mount ", "Lake ", "San ", "New York", "St. ")):
        return "location"
    if name.startswith("Project "):
        return "project"
    for cue, kind in (*_CUES, *_CUES_ZH):
        if cue.search(before):
            return kind
    return _kind_behind(text, end, at=before.endswith("在"))


def _kind_behind(text: str, end: int, *, at: bool) -> Type:
    if _PROJECT_AFTER.match(text, end):
        return "project"
    if at and _WORK_ZH.match(text, end):
        return "organization"
    return "person" if _SAYS.match(text, end) else "other"


# Facts --------------------------------------------------------------------------------------------------------------

_NAME: Final = re.compile(rf"(?:{_WORD}|[A-Z]\.)(?:(?:{_LINK})? (?:{_WORD}|[A-Z]\.)){{0,4}}|{_HAN}{{2,8}}")
_DESCRIBES: Final = _set("一个 一名 一位 医生 老师 学生 老板 同事 朋友 工程师 程序员")


def _is_name(value: str) -> bool:
    value = value.strip(" .。")
    return bool(_NAME.fullmatch(value)) and value.lower() not in _COMMON and not any(w in value for w in _DESCRIBES)


def _type_of_key(key: str) -> Type:
    if key in keys.RELATIONS or key in {"name", "called"}:
        return "person"
    if key in {"home", "hometown"}:
        return "location"
    return "organization" if key == "employer" else "other"
