"""Tells by a value's look whether it can be a secret, and whether it can only be one."""

from __future__ import annotations

import re

from memory.text.secrets.folding import BARRIER, any_of, pattern, tree, words

_QUOTED = (
    rf"\\?(?:\"(?P<a>[^\"\n{BARRIER}]{{3,400}}?)\\?\"|'(?P<b>[^'\n{BARRIER}]{{3,400}}?)\\?'"
    rf"|`(?P<c>[^`\n{BARRIER}]{{3,400}})`"
    rf"|“(?P<d>[^”\n{BARRIER}]{{3,400}})”|[「『](?P<e>[^」』\n{BARRIER}]{{3,400}})[」』]"
    rf"|« ?(?P<f>[^»\n{BARRIER}]{{3,400}}?) ?»)"
)
#: A value without quotes; Chinese text and punctuation end it.
BARE = rf"(?![\\\"'`])[^\s{BARRIER}。、「」『』“”«»\u2e80-\u9fff\uac00-\ud7a3]{{3,400}}+"
#: A value issued by a machine, which keeps to base64 and its URL-safe relatives.
BARE_KEY = r"[A-Za-z0-9+/=_.~:%-]{4,400}+"
_DIGIT = f"(?:{any_of('digits')})"
NUMBER = (
    rf"(?:[A-Z]-)?[#*]{{0,2}}(?:{_DIGIT}(?:[ ,-]{{1,2}}{_DIGIT}){{3,7}}(?!\w)|[A-Z][0-9]{{4,6}}(?!\w)|"
    r"[0-9]{1,4}(?:[^\W\d_]|#)[0-9]{1,5}(?![^\W_]|-)|[0-9](?:(?: - |[ -])?[0-9]){2,9}[#*]?"
    r"(?:[A-Z](?!\w))?(?![A-Za-z0-9_]|\.[0-9]|-[0-9]|,[0-9]{3}|:[0-9]))"
)
#: The mnemonic of a wallet: 12 to 25 words.
SEED_PHRASE = (
    r"""["'“]?((?:[^\W\d_]{3,10}(?:[^\w\n]|[0-9]){1,8}){11,24}[^\W\d_]{3,10}"""
    r"""|(?:[^\W\d_]{1,10}[ ,]){11,24}[^\W\d_]{1,10}|(?:[^\W\d_]{1,10}\n){11,24}[^\W\d_]{1,10})(?![^\W\d_])"""
)
#: Words for the state of a password, with at most so many letters behind the beginning of the word.
_STATES = "|".join(
    f"(?:{tree([one for one in words('states') if (len(one) < 5) is short])})\\w{{0,{most}}}"
    for short, most in ((True, 3), (False, 6))
)
_TOLD = rf"(?:{_STATES}|{any_of('participles')})\Z"
KNOWN = re.compile(
    rf"(?i)(?:{any_of('known')})[-_ ]?\d+\w{{0,3}}|1password|2fa|\d+[-\w]{{0,2}}fa|b2b|0x[0-9a-f]{{8,40}}|"
    r"\d+(?:st|nd|rd|th)|\d+[.,]?\d*\+?-?(?:[a-z]{1,2}|min|hrs?|hours?|days?|char\w*|bits?|digits?|letters?|"
    r"zeichen|stellig\w*|times|x\d+|[kmg]b)"
)
#: A file, a page or a setting named after its content: `./secrets/db_password.txt`, `login.password.reset`.
_NAMED = re.compile(
    r"(?i)(?:[.~]{0,2}/|(?=[\w./-]*?[./]))[\w./?=-]*(?:password|passwd|passwort|login|secret|token)(?:[./?=][\w./?=-]*)?"
    r"|(?:\w+[./])*(?:\w+_)?(?:password|passwd|passwort|login|secret|token)s?[./][\w./-]*|forgot\w* password\W*"
)
_DOMAIN = re.compile(r"[\w-]+\.[a-z]{2,3}")
_MEASURE = re.compile(rf" ?(?:{any_of('measures')})")
_NO_PASSWORD = words("no_password")
_SERVICES = words("services")
_NO_PASS = re.compile(rf"(?i)\b(?:{any_of('no_pass')})\s\Z")
_OPENS = rf"(?<![^\W\d_])(?:{any_of('opens')})|{any_of('opens_cjk')}"


def stretch(text: str, start: int, bare: str, kind: str) -> tuple[int, int] | None:
    if kind == "header":
        scheme = pattern(r"""(?:\\?["'])?(?:bearer|basic|token|bot|digest|apikey) {1,3}""").match(text, start)
        start = scheme.end() if scheme else start
    match = pattern(_QUOTED).match(text, start)
    if match is not None:
        span = match.span(match.lastgroup or 0)
    else:
        match = pattern(bare).match(text, start)
        if match is None:
            return None
        value = match.group().split("</")[0]
        if value[-1:] == ")" and "(" in value:
            value += "\0"
        kept = value.rstrip(".,:;?)]}|\"'`\0")
        span = start, start + len(kept)
    value = text[span[0] : span[1]]
    code = re.match(
        r"(?:[A-Za-z_]\w*(?:\.\w+)*[(\[]|(?:self|os|settings|config|process|env|args|user|request|options)\.)", value
    )
    placeholder = (
        len(value) < 3
        or re.fullmatch("![a-z]+", value)
        or value[0] in "<{$%("
        or value.endswith(("\\s*", "\\S+", "\\w+"))
        or "://" in value
        or _NAMED.fullmatch(value) is not None
        or not value.strip("*•.-_xX…")
    )
    return None if placeholder or code else span


def strong(value: str) -> bool:
    """Returns whether `value` can only be a password: digits among letters, or signs or capitals inside."""
    core = value.strip("*_~()[]!-.")
    if (
        len(core) < 4
        or KNOWN.fullmatch(core)
        or _NAMED.fullmatch(core)
        or re.fullmatch(r"\S+@\S+\.\w+|[\d./:-]+|\w+\.[a-z]{2,4}(?:/\S*)?|[\w.-]+/[\w./-]+\.[a-z]{2,4}", core)
    ):
        return False
    odd = any(map(is_sign, core[:-1])) and sum(map(str.isalnum, core)) >= 3 and any(map(str.isalpha, core))
    # Words joined by hyphens, as password generators make them.
    joined = re.fullmatch(r"[^\W\d_]{3,}(?:-[^\W\d_]{3,}){2,}", core) is not None
    camel = len(core) >= 8 and core.isalpha() and not core.islower() and not core.isupper() and not core[1:].islower()
    return odd or joined or camel or mixed(core)


def may_be_plain(value: str, *, sure: bool) -> bool:
    """Returns whether a word without digits and signs can be a password rather than describe one."""
    core = value.strip("*_~()[]!-").lower()
    if sure and " " in core:
        return True
    if len(core) < 4 or core in _NO_PASSWORD or re.search("(?:ed|ing|able|ible|ly)\\Z", core):
        return False
    if _DOMAIN.fullmatch(core) or _NAMED.fullmatch(core):
        return False
    return sure or (len(core) > 4 and core not in _SERVICES and not pattern(_TOLD).match(core))


def is_key(value: str, least: int) -> bool:
    return (
        len(value) >= least and mixed(value) and not KNOWN.fullmatch(value) and not set(value) & set("()[]{}$<>,\"' ")
    )


def mixed(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def stands_out(value: str, words: list[str]) -> bool:
    """Returns whether a value without a tie to its word can only be a secret; a distant one must look more like one."""
    if len(value) < 6 or set(value) & set('=()[]{}<>"') or not strong(value) or (words and is_for(words[-1].lower())):
        return False
    kinds = classes(value)
    if len(words) > 3:
        return kinds >= 3 or (kinds == 2 and len(value) > 8 and value[0].islower() and value[-1].isdigit())
    return mixed(value) or any(map(is_sign, value))


def classes(value: str) -> int:
    return sum(any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit, is_sign))


def is_sign(char: str) -> bool:
    return char in "_#$%&*+=@^~!"


def is_pass(text: str, place: int, value: str) -> bool:
    """Returns whether "pass" is short for a password rather than a ticket."""
    if text[place : place + 4].lower() != "pass":
        return True
    flight = re.fullmatch(r"[A-Z]{1,3}-?[0-9]{1,4}[A-Z]?", value)
    return flight is None and _NO_PASS.search(text, max(0, place - 20), place) is None


def counted(text: str, end: int) -> bool:
    return _MEASURE.match(text, end) is not None


def is_for(word: str) -> bool:
    return pattern(any_of("for")).fullmatch(word) is not None


def opens(text: str, start: int, end: int) -> bool:
    return pattern(_OPENS).search(text, max(0, start - 40), end + 30) is not None
