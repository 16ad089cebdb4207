"""Secrets that are known by their beginnings: vendors' keys and tokens, and passwords on command lines.

A format opens with one of some literals, at which its pattern is tried. Every pattern is bounded, so that a look
costs no more than a constant. The group `v` of a pattern is the secret; without that group the whole match is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple, TypeAlias
from unicodedata import normalize

from memory.text.secrets.folding import any_of, data, folded, pattern, words
from memory.text.secrets.values import stands_out

_BASE58: Final = "[1-9A-HJ-NP-Za-km-z]"


def _card(match: re.Match[str]) -> list[Span]:
    """Returns the card number, with its code, if its length and check digit are right.

    It has as many digits as a network issues (not 17 or 18, as Discord's ids have), a check digit by ISO/IEC 7812-1,
    annex B, and groups as on a card or a word for a card beside it.
    """
    text = match.group() + match["rest"]
    places = [i for i, char in enumerate(text) if char.isdigit()]
    for length in _CARD_LENGTHS[text[0]]:
        if length > len(places) or _goes_on(match, places[length - 1] + 1):
            continue
        number = text[: places[length - 1] + 1]
        digits = re.sub("[^0-9]", "", number)
        counted = (digits[::-2] + digits[-2::-2].translate(_DOUBLED)).encode()
        grouped = tuple(map(len, re.split("[^0-9]+", number))) in _CARD_GROUPS
        named = grouped or re.search(_CARD_WORDS, match.string[max(0, match.start() - 40) : match.start()])
        if named and (sum(counted) - ord("0") * len(counted)) % 10 == 0:
            end = match.start() + len(number)
            codes = _CARD_CODE.finditer(match.string, end, end + 60)
            return [(match.start(), end, "card number"), *((*code.span(), "card code") for code in codes)]
    return []


_CARD_LENGTHS = {"2": (16,), "3": (16, 15, 14), "4": (19, 16), "5": (16,), "6": (19, 16), "9": (16,)}
_CARD_GROUPS = {*((n,) for n in range(14, 20)), (4, 4, 4, 4), (4, 4, 4, 4, 3), (8, 8), (4, 6, 5), (4, 6, 4)}
_CARD_WORDS = r"(?i)car[dt]|kart|tarjet|kort|visa|master|amex|cc\b|карт|بطاق|کارت|כרטיס|कार्ड|บัตร|thẻ|卡|カード|카드"
#: The three or four digits that are typed with a card number, not the year or month of its expiry.
_CARD_CODE = re.compile(r"(?<![\w.,:/-])(?<!/ )(?!20[0-9]{2})[0-9]{3,4}(?![\w%]|[.,:/-][0-9]| ?/)")
#: A map of each digit to the digit sum of its double.
_DOUBLED = str.maketrans("0123456789", "0246813579")


def _goes_on(match: re.Match[str], at: int) -> bool:
    return match.string[match.start() + at : match.start() + at + 1].isalnum()


def _iban(match: re.Match[str]) -> tuple[int, int] | None:
    places = [i for i, char in enumerate(match.group()) if char.isalnum()]
    length = _IBAN_LENGTHS.get(match.group()[:2].upper(), 99)
    if length > len(places) or _goes_on(match, places[length - 1] + 1):
        return None
    account = "".join(match.group()[i] for i in places[:length])
    right = int("".join(str(int(char, 36)) for char in account[4:] + account[:4])) % 97 == 1
    return (match.start(), match.start() + places[length - 1] + 1) if right else None


_IBAN_LENGTHS = {one[:2]: int(one[2:]) for one in data("formats.yaml")["ibans"].split()}


def _mixed(match: re.Match[str]) -> bool:
    value = match.group()
    return any(map(str.isdigit, value)) and any(map(str.islower, value)) and any(map(str.isupper, value))


def _no_hash(match: re.Match[str]) -> bool:
    """Returns whether no word before the match names a transaction or a block, which look the same."""
    before = match.string[max(0, match.start() - 60) : match.start()]
    return (
        re.search(
            r"(?i)\b(?:tx|txid|txn|sig|signature|explorer|i[sş]lem\w*|trans[az]\w+|транзак\w*|交易\w*|hash\w*|bloc?k\w*|root|sha\w*|digest|topic\w*)\b",
            before,
        )
        is None
    )


def _words(match: re.Match[str]) -> tuple[int, int] | None:
    """Returns the span of a run of twelve or more words from one of the lists of BIP 39."""
    words = re.findall(r"[^\W\d_]+", match.group().lower())
    for known in _word_lists():
        line = "".join("x" if word in known else " " for word in words)
        run = re.search(r"x{12,}", line)
        # A wallet's words are random, so hardly any occurs twice.
        if run and len(set(words[run.start() : run.end()])) > 9:
            spans = [word.span() for word in re.finditer(r"[^\W\d_]+", match.group())]
            return match.start() + spans[run.start()][0], match.start() + spans[run.end() - 1][1]
    return None


@cache
def _word_lists() -> list[frozenset[str]]:
    """Returns the word lists of BIP 39. They are imported when a text first holds twelve short words in a row."""
    from mnemonic import Mnemonic

    lists = (Mnemonic(language).wordlist for language in Mnemonic.list_languages())
    return [frozenset(folded(normalize("NFC", word)) for word in words) for words in lists]


def _listed_words(match: re.Match[str]) -> tuple[int, int] | None:
    """Returns the span of a list, near a word for a wallet, in which nearly every item ends in a word of BIP 39."""
    if not pattern(any_of("wallets")).search(match.string, max(0, match.start() - 200), match.end() + 200):
        return None
    items = list(re.finditer(r"([a-z]{3,8})(?=[,;.]|\Z)", match.group()))
    right = [item for item in items if any(item[1] in known for known in _word_lists())]
    if len({item[1] for item in right}) < 11 or len(right) * 8 < len(items) * 7:
        return None
    return match.start() + right[0].start(), match.start() + right[-1].end()


def _value_stands_out(match: re.Match[str]) -> bool:
    return stands_out(match["v"], []) and "." not in match["v"][-5:-2] and "@" not in match["v"]


def _mixed_groups(match: re.Match[str]) -> bool:
    return any(map(str.isdigit, match.group())) and any(map(str.isalpha, match.group()))


def _spaced(match: re.Match[str]) -> bool:
    """Returns whether spaced letters are a password, because a word for one is near."""
    told = pattern(any_of("spaced")).search(match.string, max(0, match.start() - 80), match.end() + 40)
    return told is not None and any(map(str.isalpha, match.group()))


def _grouped(match: re.Match[str]) -> bool:
    told = pattern(any_of("typed")).search(match.string, max(0, match.start() - 80), match.end() + 40)
    return told is not None and sum(any(map(str.isdigit, group)) for group in match.group().split()) > 1


#: "... then hash": the end of digits that are typed at a door.
_KEYS = (
    r"(?:(?:and|then|und|dann|puis|et|luego|y|poi|e|en|dan|og|och|ja|potem|i|и|затем) ){1,2}"
    r"(?:(?:the|die|la|le|el|il) )?"
    r"(?:hash|star|pound|raute|rautetaste|stern|etoile|diese|asterisco|almohadilla|cancelletto|hekje|stjarna|решетк|звезд)"
)
_TOKEN = "[A-Za-z0-9_-]"  # noqa: S105 - a set of characters
_PART = r"[^\s'\"|*]{3,80}"
_PART_V = rf"['\"]?(?P<v>{_PART})"
_GAP = r"[ \t.\-_/·]{1,3}|\n"
#: The label, the pattern of a sign that the text must hold, the pattern itself, and the check of a match.
SHAPES: tuple[tuple[str, str, str, Callable[[re.Match[str]], object]], ...] = (
    ("card number", "[0-9]", rf"[234569](?<![A-Za-z0-9_].)(?=(?P<rest>(?:(?:{_GAP})?[0-9]){{13,18}}))", _card),
    (
        "bank account",
        "[0-9]",
        r"[A-Za-z](?<![A-Za-z0-9_].)[A-Za-z][ .-]?[0-9]{2}(?:[ .-]{0,2}[A-Za-z0-9]){11,40}",
        _iban,
    ),
    ("private key", ",", r"\[(?:\s?[0-9]{1,3}\s?,){63}\s?[0-9]{1,3}\s?\]", bool),
    # Also behind `/bot` in a URL and with an encoded colon (core.telegram.org/bots/api).
    ("telegram token", "[0-9]", rf"[0-9](?<![0-9].)[0-9]{{5,40}}+(?::|%3A){_TOKEN}{{35,}}+", bool),
    ("wallet key", "[0-9]", rf"[5KLc](?<![A-Za-z0-9].){_BASE58}{{50,51}}(?![A-Za-z0-9])", _mixed),
    # A key of Solana; the signature of a transaction looks the same.
    (
        "private key",
        "[0-9]",
        rf"(?<![A-Za-z0-9]){_BASE58}{{86,88}}+(?![A-Za-z0-9])",
        lambda match: _mixed(match) and _no_hash(match),
    ),
    (
        "authenticator key",
        "[0-9]",
        r"(?<![A-Za-z0-9])[A-Za-z2-7]{4}(?:[ -][A-Za-z2-7]{4}){3,15}(?![A-Za-z0-9])",
        _grouped,
    ),
    (
        "password",
        "@",
        r"@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}(?: ?[/|;:→] ?|\t| - )(?P<v>[^\s/]{6,80})",
        _value_stands_out,
    ),
    (
        "seed phrase",
        ",",
        r"(?<![a-z ])(?=[a-z ])\s?(?:[a-z][a-z ]{1,40}[,;] ){9,40}+[a-z][a-z ]{2,40}(?=[.,;\n]|\Z)",
        _listed_words,
    ),
    ("recovery key", "-", r"(?<![A-Za-z0-9-])(?:[A-Z0-9]{4}-){6}[A-Z0-9]{4}(?![A-Za-z0-9-])", _mixed_groups),
    ("password", "", r"(?<!\S)(?:[A-Za-z0-9!#$%&*+@^_.-] ){5,30}[A-Za-z0-9!#$%&*+@^_.-](?!\S)", _spaced),
    ("private key", "0x", r"0x(?<![A-Za-z0-9]..)[0-9A-Fa-f]{64}(?![A-Za-z0-9])", _no_hash),
    ("recovery key", "-", r"[0-9](?<![0-9-].)[0-9]{5}-(?:[0-9]{6}-){6}[0-9]{6}(?![0-9-])", bool),
    # Neither part may hold a slash.
    # Such a link gives access to everything behind it.
    (
        "webhook token",
        "://",
        (
            r"://[^\s]{3,200}?(?:hooks?|webhookb?2?|private|secret|ical|feeds?|catch)[/-](?:[^\s/?#-]{1,80}[/-]){0,9}?"
            r"(?P<v>[A-Za-z0-9_-]{20,400}(?:[/@][^\s?#]{1,200})?)"
        ),
        lambda match: any(map(str.isdigit, match["v"])) and any(map(str.isalpha, match["v"])),
    ),
    ("code", "[0-9]", rf"(?<![\w.,-])(?P<v>[0-9]{{3,8}}),? (?i:{folded(_KEYS)})", bool),
    ("password", "", r"(?<!\S)(?:admin|administrator|root|user|guest|gast|pi|sa) / (?P<v>\S{5,80})", _value_stands_out),
    (
        "url password",
        "@",
        r"""://[^\s/:@"'<>]{0,256}:(?P<v>[^\s/"'<>]{1,4096})@""",
        lambda match: match["v"].strip("*").lower() not in ("", "password", "passwd", "pass", "pwd", "secret", "pw"),
    ),
    ("password", ":", r":(?<=[\w*].)[0-9]{2,5}:[\w*.-]{1,60}:[\w*.-]{1,60}:(?P<v>[^\s:]{4,200})(?!\S)", bool),
    (
        "password",
        r"\|",
        (
            rf"\becho (?:-n )?['\"]?(?:[\w.-]+:)?(?P<v>{_PART})['\"]? ?"
            rf"\| ?(?:sudo -\w*S|(?:sudo )?\w*passwd|docker|gpg|openssl)"
        ),
        bool,
    ),
    ("password", "net user ", rf"net user \S{{1,40}} (?!/){_PART_V}", bool),
    ("password", "htpasswd -", rf"htpasswd -\w*b\w* \S{{1,80}} \S{{1,80}} {_PART_V}", bool),
    ("password", " password ", rf"(?:login|user|connect) \S{{1,80}}\s{{1,3}}password {_PART_V}", bool),
    ("password", "/p:", rf"\s/p:{_PART_V}", bool),
    (
        "password",
        "p: ",
        r"(?<!\S)[pP]: ?(?P<v>\S{6,80})",
        lambda match: re.search(r"\d", match["v"]) and re.search("[a-z]", match["v"]),
    ),
    (
        "seed phrase",
        "",
        r"(?<![A-Za-z])[A-Za-z]{3,8}+(?:[\s0-9,;|.()*•-]{1,8}+[A-Za-z]{3,8}+(?![A-Za-z])){11,47}+",
        _words,
    ),
    (
        "seed phrase",
        "",
        r"(?<![^\s:：])[\u3040-\u9fff\uac00-\ud7a3]{1,8}+(?:[\s,、]{1,3}[\u3040-\u9fff\uac00-\ud7a3]{1,8}+){11,47}+",
        _words,
    ),
)


def shapes(text: str) -> Iterator[Iterator[tuple[int, Span | None]]]:
    """Yields for each shape the places that look like it, each with start, end and label if it is a secret."""
    for shape in SHAPES:
        if re.search(shape[1], text):
            yield _shaped(text, *shape)


def _shaped(
    text: str, label: str, _: str, source: str, check: Callable[[re.Match[str]], object]
) -> Iterator[tuple[int, Span | None]]:
    for match in re.compile(source, re.MULTILINE | re.ASCII).finditer(text):
        right = check(match)
        if isinstance(right, list) and right:
            yield from ((match.start(), span) for span in right)
        else:
            span = right if isinstance(right, tuple) else match.span("v" if "v" in match.groupdict() else 0)
            yield match.start(), (*span, label) if right else None


_DATA = data("formats.yaml")

#: The beginning of a word; the end of an escape, as in JSON and URLs, is no word.
START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_END = r"(?![A-Za-z0-9_])"


Span: TypeAlias = tuple[int, int, str]


class Format(NamedTuple):
    """A format of secrets. `pattern` begins `back` characters before one of the literals `openings`."""

    label: str
    openings: str
    pattern: str
    back: int = 0


_CASES = folded(any_of("cases"))
#: What stands for itself in the expressions of formats.yaml.
_NAMED = {
    "@END@": _END,
    "@NAME@": r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
    "@ARGUMENT@": r"""(?:"(?P<q>[^"\n]{3,200})"|'(?P<a>[^'\n]{3,200})'|(?P<v>[^\s"'`]{3,200}))""",
    "@SPELT@": folded(f"(?:(?:{_CASES}) )?(?:[a-z0-9]|{any_of('digits')}|{any_of('signs')})(?![a-z0-9])"),
    "@CASES@": " ".join(sorted(words("cases"))),
}


def _written(source: str) -> str:
    for name, meaning in _NAMED.items():
        source = source.replace(name, meaning)
    return source


def _listed(name: str) -> Iterator[Format]:
    for label, openings, source, *back in _DATA[name]:
        yield Format(label, _written(openings), _written(source), *back)


def _prefixed() -> Iterator[Format]:
    for name, mixed in (("prefixes", ""), ("wordlike", r"(?=[a-z_-]{0,400}+[0-9A-Z])")):
        for label, least, prefixes in _DATA[name]:
            alike = "|".join(map(re.escape, prefixes.split()))
            yield Format(label, prefixes, rf"(?:{alike}){mixed}[A-Za-z0-9_-]{{{least},}}+")


def openings() -> Iterator[tuple[str, Callable[[str, int], Iterator[Span]]]]:
    """Yields every opening, with a function that finds the start, end and label of the secret there.

    One in lower case stands for any case.
    """
    for format_ in (*_prefixed(), *_listed("formats")):
        yield from ((one, _look(format_, START)) for one in format_.openings.split())
    for label, literals in _LIBRARY.items():
        yield from ((one, _library_look(label)) for one in literals.split())
    for format_ in _listed("inside"):
        yield from ((one, _look(format_, "")) for one in format_.openings.split())
    for programs, options, value in _DATA["options"]:
        for option in options.split():
            yield f" {option}", _option_look(programs, option, _written(value))


def _option_look(programs: str, option: str, value: str) -> Callable[[str, int], Iterator[Span]]:
    program = cache(lambda: re.compile(rf"(?<!\w)(?:{programs})\s[^\n]{{0,200}}\Z"))
    pattern = cache(lambda: re.compile(re.escape(f" {option}") + value))

    def look(text: str, place: int) -> Iterator[Span]:
        match = pattern().match(text, place)
        if match is not None and program().search(text[max(0, place - 220) : place + 1]):
            yield (*_value(match), "password")

    return look


def _look(format_: Format, start: str) -> Callable[[str, int], Iterator[Span]]:
    pattern = cache(lambda: re.compile(start + format_.pattern, re.ASCII))

    def look(text: str, place: int) -> Iterator[Span]:
        if match := pattern().match(text, max(0, place - format_.back)):
            yield (*_value(match), format_.label)

    return look


def _value(match: re.Match[str]) -> tuple[int, int]:
    return next((match.span(name) for name, value in match.groupdict().items() if value is not None), match.span())


# --- formats of the library detect-secrets
# -----------------------------------------------------------------------------

#: Label and openings of the formats that come from detect-secrets.
_LIBRARY = {
    "aws key": "AKIA ASIA ABIA ACCA",
    "github token": "ghp_ gho_ ghu_ ghs_ ghr_",
    "sendgrid key": "SG.",
    "slack token": "xoxa- xoxb- xoxp- xoxo- xoxs- xoxr-",
    "square secret": "sq0csp-",
    "stripe key": "sk_live_ rk_live_",
    "twilio key": "AC SK",
}


@cache
def _library() -> dict[str, re.Pattern[str]]:
    """Returns patterns of detect-secrets by our label.

    The library is imported when a text first holds one of their openings, which costs 80 ms and 7 MB. Only its patterns
    are used, not its scanning of files, its settings or its network verification.
    """
    from detect_secrets.plugins.aws import AWSKeyDetector
    from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
    from detect_secrets.plugins.discord import DiscordBotTokenDetector
    from detect_secrets.plugins.github_token import GitHubTokenDetector
    from detect_secrets.plugins.mailchimp import MailchimpDetector
    from detect_secrets.plugins.sendgrid import SendGridDetector
    from detect_secrets.plugins.slack import SlackDetector
    from detect_secrets.plugins.square_oauth import SquareOAuthDetector
    from detect_secrets.plugins.stripe import StripeDetector
    from detect_secrets.plugins.twilio import TwilioKeyDetector

    return {
        # The second AWS pattern reads secrets behind a variable's name, the second Slack pattern takes a webhook's
        # whole URL; both are masked more closely elsewhere.
        "aws key": AWSKeyDetector.denylist[0],
        "azure key": AzureStorageKeyDetector.denylist[0],
        "discord token": DiscordBotTokenDetector.denylist[0],
        "github token": GitHubTokenDetector.denylist[0],
        "mailchimp key": MailchimpDetector.denylist[0],
        "sendgrid key": SendGridDetector.denylist[0],
        "slack token": SlackDetector.denylist[0],
        "square secret": SquareOAuthDetector.denylist[0],
        "stripe key": StripeDetector.denylist[0],
        "twilio key": re.compile("|".join(pattern.pattern for pattern in TwilioKeyDetector.denylist)),
    }


def _library_look(label: str, *backs: int) -> Callable[[str, int], Iterator[Span]]:
    def look(text: str, place: int) -> Iterator[Span]:
        for start in (place - back for back in backs or (0,)):
            if start >= 0 and re.compile(START).match(text, start) and (match := _library()[label].match(text, start)):
                # Vendors lengthen their tokens; the length in the pattern is the least.
                tail = re.compile(r"[A-Za-z0-9_-]*+").match(text, match.end() - (match.group()[-1] in "\"'"))
                yield start, tail.end() if tail else match.end(), label
                return

    return look


#: Formats of the library that are known by a sign inside the secret: the secret begins before the sign.
_ENDINGS = (
    ("azure key", "==", r"(?<=[A-Za-z0-9+/]{86})(?<!sha512-.{86})==", (88, 87, 86)),
    # It has no prefix, but the distance of its two dots is telling.
    ("discord token", ".", r"\.(?=[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27})", (26, 25, 24)),
    ("mailchimp key", "-us", r"(?<=[0-9a-f]{32})-us", (32,)),
)


def ended(text: str) -> Iterator[Iterator[tuple[int, Span | None]]]:
    for label, sign, source, backs in _ENDINGS:
        if sign in text:
            look, pattern = _library_look(label, *backs), re.compile(source, re.ASCII)
            yield ((match.start(), next(look(text, match.start()), None)) for match in pattern.finditer(text))
