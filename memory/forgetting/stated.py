"""Reads what a request to forget states: "that I work at the railway" is an employer, "everything about my dog" is all.

It also reads whether a text gives a name: "Rose called", but not "prices rose", "20 Mark" or "Max Weber" for Max.

Invariants: pure, and bounded by the length of the text. Reading nothing is the normal case. A text in doubt does not
give a name, since texts that do are erased.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Final

from memory.learn.offline import patterns
from memory.learn.offline.patterns import Disclosure
from memory.store import entities
from memory.text.simplified import simplified

#: Longer requests are not read, in characters.
_LONGEST: Final = 300
#: Keys that say the opposite of one another about a value.
OPPOSITES: Final = {"likes": "dislikes", "dislikes": "likes"}
_ALL_ABOUT: Final = (
    r"(?:everything|all|anything|alles|todo|tout)(?:,? (?:that |was )?(?:you|i|du|ich|tu|que|ce que)\b[^,.]{0,30}?)? "
    r"(?:about|on|of(?! (?:it|this|that|them)\b)|über|von|zu|sobre|acerca de|de|sur|à propos de) "
)
_ABOUT: Final = re.compile(rf"^{_ALL_ABOUT}", re.IGNORECASE)
#: "Everything about …", and not any "all" or "that's all" beside what is meant.
_EVERYTHING: Final = re.compile(
    rf"\b{_ALL_ABOUT}|的(?:一切|所有|全部)|(?:一切|所有|全部)(?:关于|有关|跟|和)|(?:忘[掉了记]|删[掉除])(?:一切|所有|全部)"
    r"|(?:こと|について|関すること)(?:[のをは、])?(?:全部|すべて|全て|何もかも)|(?:全部|すべて|全て|何もかも)を?(?:忘れ|消し|削除)",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"\b(?:that|dass|daß|que)\s|\bqu['’]|忘れて|(?:という)?こと|忘[掉了记]|删[掉除]", re.IGNORECASE
)
#: A German clause, whose verb stands at its end.
_VERB_LAST: Final = re.compile(r"ich (?P<rest>.{1,80}) (?P<verb>\w{2,20})", re.IGNORECASE)


def everything(request: str) -> bool:
    return len(request) <= _LONGEST and _EVERYTHING.search(request) is not None


def bare(words: str) -> str:
    return _ABOUT.sub("", words) or words


def stated(*requests: str) -> list[Disclosure]:
    for request in requests:
        for clause in _clauses(request) if len(request) <= _LONGEST else ():
            if found := patterns.extract(clause, today=date.min.replace(year=1970)):
                return found
    return []


def opposite(fact: Disclosure) -> str | None:
    return OPPOSITES.get(fact.key)


def _clauses(request: str) -> Iterator[str]:
    yield request
    for clause in (part.strip(" ,.!。！を").removesuffix("な") for part in _CLAUSE.split(request)[:4]):
        if (found := _VERB_LAST.fullmatch(clause)) is not None:
            yield f"ich {found['verb']} {found['rest']}"
        yield clause


# Names in texts -------------------------------------------------------------------------------------------------------

#: Characters with which what follows a name begins, in scripts without spaces: particles, titles, adverbs, verbs. There
#: is no list of all words here, and any other character may go on to a longer one, as in 小白菜 for 小白.
_FOLLOWING: Final = re.compile(
    "[的地得了着过吗呢吧啊呀嘛是在很不也都就又还再没有要会能可该应想喜爱最真太更好乖坏病死活生吃喝睡醒跑跳叫喊来去走住到从向往里身家上下"
    "先总已经曾正刚一两三几个只和跟与同或及给对把被让使由为因但而说问答看见找带养买卖打咬怕这那今昨明每前后洗剪换遛喂抱接送挂预订做办擦"
    "梳量称拍教训陪哄治检查驱绝搬寄修约开关收放取拿用穿戴坐站躺玩笑哭闹饿渴累困冷热胖瘦高长大出进回起拉吐掉摔伤疼痛发变成像叼舔闻抓]"
    "|[はがをにでとのもへねよさちくまだじ様君氏殿]|[이가은는을를의에와과도야아랑한네님씨께만]"
)
_KANA: Final = re.compile("[\u3041-\u30ff]")
_KATAKANA: Final = re.compile("[\u30a1-\u30ff]")


def gives(name: str, text: str, *, is_word: bool) -> bool:
    """Returns whether a text gives a name alone, and with its capitals if its script has any.

    With `is_word`, the name is a word, too, and at the beginning of a sentence it may be that word.
    """
    if name.lower() == name.upper():
        return entities.stands_in(name, text) and _gives_alone(simplified(name), simplified(text))
    if name.islower():
        return False
    before = r"(?<=[\w,;]\s)" if is_word else r"(?<!\w)"
    for match in re.finditer(rf"{before}(?<!\d\s){re.escape(name)}(?:['’]?s)?(?!\w)\s*", text):
        is_longer = match[0][-1:].isspace() and text[match.end() : match.end() + 1].isupper()
        if not is_longer:
            return True
    return False


def _gives_alone(name: str, text: str) -> bool:
    """Returns whether no character beside a name may belong to a longer word."""
    if name[-1] < "\u3040":  # a script with spaces, or one whose words nothing here tells apart
        return True
    for match in re.finditer(re.escape(name), text, re.IGNORECASE):
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        goes_on = after.isalpha() and not _FOLLOWING.match(after) and not (_KANA.match(name[-1]) and after > "\u30ff")
        if not goes_on and not (_KATAKANA.match(name[0]) and _KATAKANA.match(before)):
            return True
    return False


def is_small_in(name: str, text: str) -> bool:
    """Returns whether a text holds the word that a name is, or the name in small letters."""
    small = name.lower()
    return small != name.upper() and re.search(rf"(?<!\w){re.escape(small)}(?!\w)", text) is not None
