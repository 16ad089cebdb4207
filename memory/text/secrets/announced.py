"""Secrets that a word announces: "my password is ...", `api_key=...`, 密码是...

One table lists the words by language. The tie between a word and a value decides which values count: behind a sign
(a colon, an arrow, a table's cell, a tag) almost any value, behind a verb a value that looks like a password, and
beside or before the word only a value that looks like nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from memory.text.secrets.folding import ANNOUNCING, BARRIER, any_of, pattern, words
from memory.text.secrets.values import (
    BARE,
    BARE_KEY,
    KNOWN,
    NUMBER,
    SEED_PHRASE,
    classes,
    counted,
    is_for,
    is_key,
    is_pass,
    may_be_plain,
    mixed,
    opens,
    stands_out,
    stretch,
    strong,
)

_SIGN = (
    r"(?:[\\\"'`*_~)\]»”’]{0,4}[ \t]{0,4}(?:</?[a-z][^<>\n]{0,40}>){0,2}"
    r"(?::=|=>|->|[:=|→➜➡⇒👉↦>\t՝፡៖]|;(?=\S)|~{2,3}|"
    r"[\"'] ?, ?(?=[\"'\\])|[\"'\s,]{1,12}value[\"']? ?[=:]|</?[a-z][^<>\n]{0,40}>|[(\[])"
    r"[ \t]{0,8}(?:</?[a-z][^<>\n]{0,40}>[ \t]{0,4}){0,4}[ \t>|*_~`]{0,6}-?(?:\n[ \t>*|`-]{0,6}){0,3}"
    # Columns of blanks, to the end of the line.
    r"| {2,20}(?=\S{3,80}[ \t]*(?:\n|\Z)))"
)
#: The link from a word to its value: a sign, a verb, the end of the line, or nothing.
_LINK = (
    rf"(?:(?P<sign>{_SIGN})|[*_`\"')]{{0,3}}[,?]?"
    rf"(?P<verb> {{0,2}}(?:(?<= )(?:(?:{any_of('adverbs')}) )?(?:{any_of('is')})(?: (?:{any_of('adverbs')}))?|'s|"
    rf"(?<= )(?:{any_of('adverbs')})|{any_of('is_cjk')}):? {{1,2}}\n{{0,2}})"
    r"|(?P<line> {0,2}[?？]?\n{1,2}(?:[-=~]{3,40}\n)?[ \t]{0,4}(?=\S))"
    r"|(?P<near>(?:[,.?!;…]|\.\.\.)? {1,2}(?:(?=[^\s]{0,40}?[0-9_!#$%&*+=@^~])|"
    rf"(?=[\"“«„][^\"”»“\n]{{3,40}}[\"”»“])|(?=(?:{any_of('digits')}) (?:{any_of('digits')})(?!\w))|"
    r"(?<=[^\x00-\u024f] )(?=[a-z]{5}))))"
)
_NONE = "(?P<sign>(?!))?(?P<line>(?!))?(?P<near>(?!))?"
#: The link to a new value behind a verb of change: "changed it to ...".
_LINK_TO = rf"(?P<verb> {{1,2}}(?:{any_of('to')}):? {{1,2}}){_NONE}"
_CHANGED = rf"(?<![^\W\d_])(?:{any_of('changed')})"
#: The link behind a name and the word: the next word is the value.
_LINK_BESIDE = rf"(?P<verb> {{1,2}})(?=[^\W\d_]{{4}}){_NONE}"
#: The link in Chinese and its neighbours, which use no spaces: text in other letters is the value.
_LINK_CJK = rf"(?:(?P<sign>{_SIGN})|(?P<verb>(?:{any_of('is_cjk')})?[: ]{{0,3}})(?=[\x21-\x7e「『“«]))"
_WORD = re.compile(rf"[^\s{BARRIER}]+")
_VALUED = re.compile(r"[0-9_!#$%&*+=@^~\"“«`]")
_VALUE_BEFORE = re.compile(r"[0-9\"`“«]|'\S+' ")
_LEADS = re.compile(r"[0-9_!#$%&*+=@^~:|>→➜➡⇒👉↦(\n\t\"«“「は은는이]")
_JOINED = r" (?:and|und|et|y|e|i|en|og|och|ja|a|и|і|ve) \w"
_USER = rf"(?<!\w)(?:{any_of('users')})[ :=-]{{1,3}}\S{{2,40}}[ ,/;|]{{1,4}}\Z"
_SERVICE = rf"(?<!\w)(?:{any_of('services')})(?!\w)"
_WIFI = any_of("wifi")
#: The last Latin letter: those of other alphabets come after it.
_LATIN = "\u024f"
_ASCII_WORD = re.compile(r"[A-Za-z]{4}")
_VERBS = words("is") | words("adverbs")
_LINKING = _VERBS | words("to")
_ONE_OF = words("one_of")
#: Words between a value and the word for it.
_TIES_BEFORE = _VERBS | words("ties_before")
_TIES_AGAIN = _VERBS | words("ties_again")
_NO_LINK = re.compile(rf"(?i)\s*(?:{any_of('no_link')})")
_NO_OPENS = rf"(?<![^\W\d_])(?:{any_of('no_opens')})|{any_of('no_opens_cjk')}"
#: A one-time code of capitals and digits.
_LETTERED = re.compile(r"(?=[A-Z]{0,7}[0-9])(?=[0-9]{0,7}[A-Z])[A-Z0-9]{5,8}(?!\w)")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}(?![0-9])")
_PLACEHOLDER = rf"(?<![^\W_])(?:{any_of('placeholders')})(?![^\W_])"
_YOURS = words("yours")
_LOST = rf"(?<!\w)(?:{any_of('forgotten')})"
_POSTAL = re.compile(rf"(?i) ?(?:{any_of('postal')})")
#: A step from word to word, even across a comma or the end of a sentence.
_STEP = (
    r"(?:'s|[,.?!;])? {1,2}(?:\([^()\n]{1,40}\)|\[[^\[\]\n]{1,40}\]|"
    rf"(?:[^\s:=|()<>.!?;,\"{BARRIER}]|\.(?=\w)){{1,40}})"
)
_STEP_CJK = rf"，(?=现在|新|改|是)|[^\x00-\x7f。、！？，{BARRIER}]| (?=[^\x00-\x7f])|(?i:wi-?fi)"
#: The most steps.
_STEPS, _STEPS_CJK = 12, 14
_ENDS_SENTENCE = r"""["'”’)\]]?(?: ?[.,!?;:。]|[ \t]{0,3}(?:\n|\Z|&&|</?[a-z]|-->|\|))"""


_Span = tuple[int, int, str]
_Look = Callable[[str, int], Iterator[_Span]]


def openings() -> Iterator[tuple[str, _Look]]:
    """Yields every announcing word in lower case, with a function that finds the start, end and label of its values."""
    known: set[tuple[str, str]] = set()
    for label, kind, some in ANNOUNCING:
        for word in some:
            for spelt in sorted({word.replace(" ", blank) for blank in (" ", "_", "-", "")} | _misspelt(word, kind)):
                if (spelt, kind) not in known:
                    known.add((spelt, kind))
                    yield spelt, _look(spelt, kind, label)
    yield BARRIER, _again


def _misspelt(word: str, kind: str) -> set[str]:
    """Returns the misspellings of a long word for a password: two letters swapped, or one left out."""
    if kind != "password" or len(word) < 8 or not word.isascii() or " " in word:
        return set()
    swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(1, len(word) - 1)}
    return swapped | {word[:i] + word[i + 1 :] for i in range(1, len(word) - 1)}


def worth_reading(text: str, place: int, end: int) -> bool:
    """Returns whether anything near the word from `place` to `end` can be a value or lead to one."""
    return (
        _LEADS.search(text, end, end + 100) is not None
        or _VALUED.search(text, max(0, place - 80), place) is not None
        or not _LINKING.isdisjoint(text[end : end + 80].lower().split())
        or (text[place] > _LATIN and _ASCII_WORD.search(text, end, end + 80) is not None)
        or _beside_a_user(text, place)
    )


def _again(text: str, place: int) -> Iterator[_Span]:
    """Yields a second value behind a mark: "..., and the new one is ..."."""
    stop = text.find(BARRIER, place + 1, place + 100)
    words = list(_WORD.finditer(text, place + 1, stop if stop >= 0 else place + 100))[:9]
    for nth, word in enumerate(words):
        value = word.group().rstrip(".,;:!?)\"'")
        tied = not _TIES_AGAIN.isdisjoint(one.group().lower() for one in words[max(0, nth - 2) : nth])
        if tied and mixed(value) and stands_out(value, []):
            yield word.start(), word.start() + len(value), "password"
            return


def _look(word: str, kind: str, label: str) -> _Look:
    cjk = word[-1] >= "\u0e00" and word[-1].isalpha() and not "\u1200" <= word[-1] < "\u1380"
    # Short words occur inside longer ones.
    alone = (len(word) <= 4 and word.isascii() and kind != "code") or kind in (
        "account", "entry", "pair", "vendor", "answer", "cookie",
    )  # fmt: skip

    def look(text: str, place: int) -> Iterator[_Span]:
        end = place + len(word)
        if alone and (_in_word(text, place - 1) or _in_word(text, end)):
            return
        if kind == "entry":
            spans = [*entered(text, place, end)]
        elif kind == "pair":
            spans = [*paired(text, end)]
        elif kind == "turns":
            spans = [*turns(text, end)]
        elif kind == "cookie":
            spans = [*cookies(text, end)]
        elif kind == "answer":
            spans = [*answered(text, place, end)]
        elif kind == "vendor":
            spans = [*issued(text, end)]
        elif kind in ("code", "wifi") and pattern(_WIFI).search(text, max(0, place - 12), end + 25):
            spans = list(_behind(text, place, end, "password", cjk=cjk))
        elif kind == "wifi":
            return
        else:
            spans = list(_behind(text, place, end, kind, cjk=cjk)) or list(_before(text, place, kind))
            spans += [*columns(text, place, end, kind), *listed(text, end, kind)]
        yield from ((*span, label) for span in spans)

    return look


def _in_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at].isalnum()


def _behind(text: str, place: int, end: int, kind: str, *, cjk: bool) -> Iterator[tuple[int, int]]:
    """Yields start and end of the value behind a word, and of weaker candidates before that value."""
    at = end
    if not cjk and (
        tail := pattern(r"(?:s|e?n|i|[_-][a-z]{1,12})?(?![^\W\d_])|(?!)" if kind == "key" else r"[^\W\d_]{0,7}").match(
            text, end
        )
    ):
        at = tail.end()
    plural = text[end:at].lower() in ("s", "es")
    first = at
    for _ in range(_STEPS_CJK if cjk else _STEPS):
        link = _link(text, place, at, kind, first=at == first, cjk=cjk)
        if link is not None:
            span = _value(text, place, text[first:at], link, kind, cjk=cjk, plural=plural)
            if span is not None and (classes(text[slice(*span)]) > 3 or at == first or not _NO_LINK.match(text, first)):
                yield span
                if link.groupdict().get("near") is None or classes(text[slice(*span)]) > 2:
                    return
        step = pattern(_STEP_CJK if cjk else _STEP).match(text, at)
        if step is None:
            return
        at = step.end()
    return None


def _link(text: str, place: int, at: int, kind: str, *, first: bool, cjk: bool) -> re.Match[str] | None:
    if cjk:
        return pattern(_LINK_CJK).match(text, at)
    if first and kind in ("password", "open"):
        link = pattern(_LINK_BESIDE).match(text, at)
        if link and _beside_a_user(text, place):
            return link
    if link := pattern(_LINK).match(text, at):
        return link
    link = pattern(_LINK_TO).match(text, at)
    return link if link and pattern(_CHANGED).search(text, max(0, place - 40), at) else None


def _before(text: str, place: int, kind: str) -> Iterator[tuple[int, int]]:
    """Yields start and end of a value before its word: "... is my password", "... as the password"."""
    if kind not in ("password", "open", "pin", "code", "key", "loosely"):
        return
    if not _VALUE_BEFORE.search(text, max(0, place - 80), place):
        return
    words = list(_WORD.finditer(text, max(0, place - 80), place))[-8:]
    between = [word.group().lower().strip("(.,;") or "," for word in words]
    for nth in range(len(words) - 1, -1, -1):
        start, end = words[nth].span()
        start += len(words[nth].group()) - len(words[nth].group().lstrip("\"'`“«¿¡("))
        end -= len(words[nth].group()) - len(words[nth].group().rstrip("\"'`”»,;:.!?"))
        value, later = text[start:end], between[nth + 1 :]
        tied = len(later) <= 5 and (
            end < words[nth].end()
            or not _TIES_BEFORE.isdisjoint(later)
            or any(one[0] in "かは" for one in later)
            or not _VERBS.isdisjoint(between[max(0, nth - 2) : nth])
        )
        if not _ONE_OF.isdisjoint(later[-3:]) or len(value) < 3 or text[end : end + 2] == ": ":
            continue
        if kind in ("pin", "code"):
            match = pattern(NUMBER).fullmatch(text, start, end)
            right = (
                tied
                and match
                and len(later) <= 4
                and (kind == "pin" or opens(text, start, place) or not _YOURS.isdisjoint(later))
            )
        elif kind in ("key", "loosely"):
            right = tied and is_key(value, 16 if kind == "key" else 8)
        else:
            quoted = re.fullmatch(r"(?:\".+\"|'.+'|`.+`|“.+”|«.+»)[.,]?", words[nth].group()) and not _VERBS.isdisjoint(
                later[:1]
            )
            named = nth and is_for(between[nth - 1]) and classes(value) < 3 and _TIES_BEFORE.isdisjoint(later)
            right = stands_out(value, []) and mixed(value) and not named and (tied or classes(value) > 3)
            right = right and "://" not in value
            right = right or (quoted and may_be_plain(value, sure=True))
        if right:
            yield start, end
            return


def _value(  # noqa: PLR0911 - one way out for each kind
    text: str, place: int, of: str, link: re.Match[str], kind: str, *, cjk: bool, plural: bool
) -> tuple[int, int] | None:
    """Returns start and end of the value that `link` leads to, behind the words `of`, if it is a secret."""
    start, sign, verb = link.end(), link["sign"] or "", link["verb"]
    near = not sign and not (verb or "").strip() and (cjk or link["line"] is None)
    if of.strip() and sign.lstrip()[:1] in ("'", '"') and "," in sign:
        return None
    if kind in ("pin", "code"):
        return _number(text, place, link, of, kind, near=near)
    if kind in ("line", "phrase"):
        source = SEED_PHRASE if kind == "phrase" else rf"[\"'“«]?([^\s{BARRIER}\"”»][^\n{BARRIER}\"”»]{{3,200}})"
        told = sign or (verb and (kind == "phrase" or text[start : start + 1] in ('"', "'", "“", "«", "「")))
        match = pattern(source).match(text, start) if told and (kind == "phrase" or _ties(of)) else None
        return match.span(1) if match else None
    if kind == "account":
        match = pattern(r"[A-Z]{0,6}[0-9](?:[ .-]?(?-i:[0-9A-Z])){5,25}(?!\w)").match(text, start)
        return match.span() if match and sum(map(str.isdigit, match.group())) > 5 and len(of.split()) < 3 else None
    span = stretch(text, start, BARE_KEY if kind in ("key", "bearer") else BARE, kind)
    if span is None:
        return None
    value = text[span[0] : span[1]]
    if kind in ("password", "open"):
        if value.strip("*#").isdigit():
            return _number(text, place, link, of, kind, near=near) if len(value) > 3 else None
        tied = _ties(of) and not plural
        right = _is_password(text, place, span, of.split(), link, kind, cjk=cjk, near=near, tied=tied)
    elif kind == "header":
        scheme = pattern(r"(?:bearer|basic|token|bot|digest|apikey) {1,3}\Z").search(text, start, span[0])
        right = sign != "" and (mixed(value) or scheme is not None)
    elif kind == "bearer":
        right = mixed(value) and len(value) >= 20
    elif kind == "loosely":
        right = len(value) >= 6 and any(map(str.isdigit, value))
    else:
        quoted = text[span[1] : span[1] + 1] in ("'", '"') and sign != ""
        right = is_key(value, 8 if sign or cjk else 12 if verb else 20) or (
            quoted and len(value) > 11 and strong(value) and " " not in value
        )
        right = right and pattern(_PLACEHOLDER).search(value) is None
    return span if right else None


def _is_password(  # noqa: PLR0911 - each kind of tie stands alone
    text: str,
    place: int,
    span: tuple[int, int],
    words: list[str],
    link: re.Match[str],
    kind: str,
    *,
    cjk: bool,
    near: bool,
    tied: bool,
) -> bool:
    value, after = text[slice(*span)], text[span[1] : span[1] + 1]
    if kind == "open" and not is_pass(text, place, value):
        return False
    sign, quoted = (link["sign"] or "").strip(), after != "" and after in "\"'`”»」』\\"
    # In a text of another alphabet, a word in Latin letters is a name or a value.
    foreign = text[place] > _LATIN and value.isascii() and (cjk or not link["sign"])
    final = quoted or sign in ("=", ":=") or pattern(_ENDS_SENTENCE).match(text, span[1]) or foreign
    joined = sign and pattern(_JOINED).match(text, span[1]) is not None
    # "I forgot the password of ..." names the service, not the password.
    lost = not sign and pattern(_LOST).search(text, max(0, place - 40), place) is not None
    plain = tied and not lost and (final or joined) and sign not in ("(", "[") and len(words) <= 4
    if near and not cjk:
        if quoted and tied and may_be_plain(value, sure=True):
            return True
        bare = foreign and final and not lost and len(words) < 4 and value.islower()
        if (bare or (plain and not words and _beside_a_user(text, place))) and may_be_plain(value, sure=False):
            return True
        return stands_out(value, words) and after not in (":", "=")
    if strong(value):
        return len(value) >= (6 if near or not (link["sign"] or link["verb"]) else 4)
    if kind == "open" and pattern(_SERVICE).search(text, max(0, place - 20), link.end()):
        kind = "password"
    if kind == "open" and (words or not link["sign"]) and len(value) < 15 and not foreign:
        return False
    if quoted and link["verb"] and len(words) < 5 and " " in value:
        return may_be_plain(value, sure=True)
    return bool(plain) and may_be_plain(value, sure=cjk or quoted or bool(sign and not joined))


def _beside_a_user(text: str, place: int) -> bool:
    """Returns whether a name stands before the word for a password: "user ada, password ..."."""
    return pattern(_USER).search(text, max(0, place - 60), place) is not None


def _number(  # noqa: PLR0911 - each rule that a number is no secret stands alone
    text: str, place: int, link: re.Match[str], of: str, kind: str, *, near: bool
) -> tuple[int, int] | None:
    """Returns start and end of the digits of a PIN or a code."""
    match = pattern(NUMBER).match(text, link.end())
    if match is None and kind == "pin" and link["sign"]:
        match = _LETTERED.match(text, link.end())
    if match is None or re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|(?:19|20)[0-9]{2}-", match.group()):
        return None
    if counted(text, match.end()) or _POSTAL.search(text, place, link.end()):
        return None
    if kind == "code" and not opens(text, place, match.start()) and not _may_open(text, place, of, match, near=near):
        return None
    if pattern(rf"(?:{_NO_OPENS})\w{{0,9}}[ _-]?\Z").search(text, max(0, place - 24), place):
        return None
    word = of.rsplit(maxsplit=1)[-1].lower() if of.split() else ""
    if (link["sign"] and not _ties(of) and len(of.split()) > 2) or (
        near and len(of.split()) > (4 if kind in ("password", "open") else 8)
    ):
        return None
    # "Whom do I call? 116116?" asks for a number.
    if near and (text.startswith("?", match.end()) or is_for(word) or KNOWN.fullmatch(f"{word} {match.group()}")):
        return None
    postal = len(re.sub(r"[^0-9]", "", match.group())) == 6 and pattern(r"(?:pin ?code|पिन कोड)\W").search(
        text, max(0, place - 5), match.start()
    )
    if postal and (
        not pattern(r"(?:my|your|our|the|card|phone) \Z").search(text, max(0, place - 6), place)
        or re.match(r", [A-Z]", text[match.end() : match.end() + 3])
    ):
        return None
    return match.span() if kind != "open" or not near or len(match.group()) > 5 else None


def _may_open(text: str, place: int, of: str, number: re.Match[str], *, near: bool) -> bool:
    """Returns whether digits behind "code" may open something, though it is not named: no year, error or product."""
    digits = sum(map(str.isdigit, number.group()))
    return (
        3 < digits < 9
        and len(of.split()) < (4 if near else 6)
        and _YEAR.match(number.group()) is None
        and pattern(_NO_OPENS).search(text, max(0, place - 24), number.end() + 12) is None
    )


def _ties(of: str) -> bool:
    """Returns whether at most the value's purpose stands between word and value."""
    return (
        not of.strip()
        or pattern(
            rf" {{1,2}}(?:(?:[^\W\d_]{{3,12}} )?(?:{any_of('for')})|(?:{any_of('services')})|[(\[])(?!\w)"
        ).match(of)
        is not None
        or len(of.split()) == 1
    )


def entered(text: str, place: int, end: int) -> Iterator[tuple[int, int]]:
    for match in re.compile(r"(?<![\w.,:/-])[#*]?(?P<v>[0-9](?: [0-9]){2,7}|[0-9]{3,8})#?(?![\w%]|[.,:/-]\d)").finditer(
        text, max(0, place - 30), end + 20
    ):
        word = text[: match.start()].rsplit(None, 1)[-1:] if match.start() > end + 1 else []
        at_ = bool(word) and is_for(word[0])
        if not at_ and opens(text, max(0, place - 30), end + 30) and not counted(text, match.end()):
            yield match.span("v")


def cookies(text: str, end: int) -> Iterator[tuple[int, int]]:
    line = re.compile(r": ?[^\n]{0,2000}").match(text, end)
    for match in re.compile(r"=([A-Za-z0-9%_.+/=-]{16,})").finditer(text, end, line.end() if line else end):
        if mixed(match[1]):
            yield match.span(1)


def answered(text: str, place: int, end: int) -> Iterator[tuple[int, int]]:
    match = re.compile(r" ?(?:[:=→>-]+|is|ist|es|est|è)? ?[\"“«]?(?P<v>[^\n,.;\"”»]{3,60})").match(text, end)
    if match and pattern(any_of("questions")).search(text, max(0, place - 120), place):
        yield match.span("v")


def turns(text: str, end: int) -> Iterator[tuple[int, int]]:
    """Yields the turns that open a dial: "right 32, left 17 twice past, right 5"."""
    turn = rf"(?<![^\W\d_])(?:{any_of('turns')})\W{{1,3}}(?:[^\W\d_]{{1,5}} ){{0,2}}[0-9]{{1,2}}(?![0-9])"
    match = pattern(rf"[^\n]{{0,60}}?(?P<v>{turn}(?:[^0-9\n]{{0,30}}?{turn}){{1,5}})").match(text, end)
    if match:
        yield match.span("v")


def issued(text: str, end: int) -> Iterator[tuple[int, int]]:
    for match in re.compile(r"(?<![\w/.=-])(?:[0-9a-f]{32,64}|[A-Za-z0-9_-]{24,80})(?![\w./-])").finditer(
        text, end, end + 160
    ):
        value, before = match.group(), text[max(end, match.start() - 24) : match.start()]
        random = mixed(value) and (value.islower() or classes(value) > 2) and sum(map(str.isdigit, value)) > 3
        named = text.startswith(("key", "Key", "KEY"), match.start() - 4)
        if random and (value.count("-") < 3 or named) and not pattern(any_of("hashes")).search(before):
            yield match.span()


def paired(text: str, end: int) -> Iterator[tuple[int, int]]:
    """Yields the second of two values behind a word for both: "log in with dave / ..."."""
    match = re.compile(r"[^\n:]{0,40}?:? \S{2,40}(?: ?[/,|] ?|:)(?P<v>[^\s/]{4,80})").match(text, end)
    value = match["v"].rstrip(".,;)") if match else ""
    final = match and re.compile(r"[.,;)]?(?:\n|\Z)").match(text, match.start("v") + len(value))
    if match and (stands_out(value, []) or (final and may_be_plain(value, sure=False))):
        yield match.start("v"), match.start("v") + len(value)


def columns(text: str, place: int, end: int, kind: str) -> Iterator[tuple[int, int]]:
    if kind not in ("password", "open", "pin", "key"):
        return
    if not re.compile(r'[^\W\d_]{0,7}[ "*`]*[\t|;,\n]').match(text, end):
        return
    start = text.rfind("\n", max(0, place - 200), place) + 1
    stop = text.find("\n", end, end + 200)
    separator = next((one for one in "\t|;," if one in text[start:stop]), None)
    if separator is None or stop < 0 or not re.compile(r"[\w .\-*/\"`\t|;,]+").fullmatch(text, start, stop):
        return
    heads = _cells(text, start, stop, separator)
    nth = next((i for i, (first, last) in enumerate(heads) if first <= place < last), 0)
    above = _cells(text, text.rfind("\n", max(0, start - 200), max(0, start - 1)) + 1, max(0, start - 1), separator)
    if any(last - first > 30 for first, last in heads) or len(above) == len(heads) > 1:
        return
    for _ in range(40):
        start, stop = stop + 1, text.find("\n", stop + 1, stop + 400)
        stop = len(text) if stop < 0 and len(text) < start + 400 else stop
        cells = _cells(text, start, stop, separator)
        if stop < start or len(cells) != len(heads):
            return
        first, last = cells[nth]
        while first < last and text[first] in ' "`*':
            first += 1
        while first < last and text[last - 1] in ' "`*':
            last -= 1
        plain = separator == "," and " " in text[first:last]
        if last - first > 2 and text[first:last].strip("-: ") and not plain and BARRIER not in text[first:last]:
            yield first, last


def _cells(text: str, start: int, stop: int, separator: str) -> list[tuple[int, int]]:
    return [
        match.span()
        for match in re.compile(rf'(?<![^\n{separator}])(?:"[^"\n]*"|[^"\n{separator}]*)').finditer(text, start, stop)
    ]


def listed(text: str, end: int, kind: str) -> Iterator[tuple[int, int]]:
    if kind not in ("password", "open", "pin", "loosely"):
        return
    several = kind == "loosely" or text[end : end + 1] in ("s", "n", "e", "y", "и")
    head = re.compile(r"[^\n:]{0,60}+(?::(?= |\n)|(?=\n))" if several else ":?(?=\n)").match(text, end)
    if head is None:
        return
    lines = text.startswith("\n", head.end())
    item = re.compile(
        rf"\n*[^\n{BARRIER}]{{0,60}}?(?P<tie> [-=:→>] |: )?(?P<v>[^\s,;{BARRIER}]{{4,80}})[ .]*(?:(?=\n)|\Z"
        + (")" if lines else r"|[,;] )")
    )
    at = head.end()
    for _ in range(40):
        match = item.match(text, at)
        value = match["v"].rstrip(".,;") if match else ""
        if match is None or not (
            (strong(value) and len(value) > 4)
            or (may_be_plain(value, sure=True) and match["tie"])
            or value.strip("#*").isdigit()
            or (kind == "loosely" and sum(map(str.isdigit, value)) > 3)
        ):
            return
        yield match.start("v"), match.start("v") + len(value)
        at = match.end()
