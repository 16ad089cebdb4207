"""Secrets that are known by their own look: what vendors issue, and cards, accounts, wallets and command lines.

A format opens with one of some literals, at which its pattern is tried, or has a shape and is searched for when the
text holds its sign. Every pattern is bounded, so that a look costs no more than a constant. The group `v` of a
pattern is the secret; without one all of it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple
from unicodedata import normalize

from memory.text.secrets.folding import folded
from memory.text.secrets.vocabulary import data

_DATA = data("formats.yaml")

#: Where a word begins; the end of an escape, as in JSON and URLs, is no word.
START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_END = r"(?![A-Za-z0-9_])"
_BASE58 = "[1-9A-HJ-NP-Za-km-z]"


class Format(NamedTuple):
    """`openings` are the literals that `pattern` may begin with, `back` how many characters before its opening."""

    label: str
    openings: str
    pattern: str
    back: int = 0


#: A value on a command line, quoted or not.
_ARGUMENT = r"""(?:"(?P<q>[^"\n]{3,200})"|'(?P<a>[^'\n]{3,200})'|(?P<v>[^\s"'`]{3,200}))"""
_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

_FORMATS = (
    Format("elevenlabs key", "sk_", rf"sk_[a-f0-9]{{48}}{_END}"),
    Format("fly token", "fm2_", r"fm2_[A-Za-z0-9_+/=-]{40,}+"),
    Format("pulumi token", "pul-", rf"pul-[a-f0-9]{{40}}{_END}"),
    Format("notion token", "secret_", rf"secret_[A-Za-z0-9]{{43}}{_END}"),
    Format("grafana token", "glc_ey", r"glc_ey[A-Za-z0-9_+/=-]{32,}+"),
    Format("doppler token", "dp.st.", r"dp\.st\.[A-Za-z0-9_.-]{40,}+"),
    Format("mailgun key", "key-", rf"key-[a-f0-9]{{32}}{_END}"),
    Format("airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    Format("slack token", "xoxe.xox", r"xoxe\.xox[bp]-[0-9A-Za-z-]{20,}+"),
    # Two to five base64url parts of which the first is a JSON object (RFC 7519, RFC 7516).
    Format("json web token", "eyJ", r"eyJ[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{8,8000}+(?:\.[A-Za-z0-9_-]*+){0,3}+"),
    Format("azure secret", "q~", rf"[A-Za-z0-9_~.-]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{31,34}}{_END}", 4),
    Format("terraform token", ".atlasv1", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}+", 14),
    Format(
        "password hash", "$2a$ $2b$ $2y$ $6$ $5$ $y$ $apr1$ $argon2", r"(?<![^\s:'\"=])\$[a-z0-9]{1,8}\$[^\s:'\"]{20,}+"
    ),
    Format(
        "session cookie", "sid= sessionid= session= PHPSESSID= JSESSIONID=", r"\w{3,10}=(?P<v>[A-Za-z0-9%_.+/=-]{24,}+)"
    ),
    # The secret key that people paste right behind its id: forty characters with nothing but signs between.
    Format(
        "aws secret",
        "AKIA ASIA",
        r"(?:AKIA|ASIA)[0-9A-Z]{16}[^A-Za-z0-9+/]{1,6}(?:secret[^A-Za-z0-9+/]{1,6})?"
        r"(?=[a-z0-9+/]{0,39}[A-Z])(?=[A-Z0-9+/]{0,39}[a-z])(?P<v>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=_-])",
    ),
)
#: What stands behind a telling part, wherever that stands.
_INSIDE = (
    # PEM blocks (RFC 7468), with escaped line ends too. One that was cut off is masked as far as it is base64.
    Format(
        "private key",
        "-----begin",
        rf"-----BEGIN {_NAME}(?:(?:[^-]|-(?!----))*+-----END {_NAME}|(?:(?:\s|\\[nr]){{0,4}}[A-Za-z0-9+/=]{{20,}}+)*+)",
    ),
    Format("webhook token", "webhooks/ interactions/", r"[a-z]{8,12}/[0-9]{15,21}/(?P<v>[A-Za-z0-9_-]{30,}+)"),
    Format(
        "webhook token",
        "hooks.slack",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<v>[A-Za-z0-9_/-]{20,}+)",
    ),
    Format("azure signature", "sig=", r"sig=(?P<v>[A-Za-z0-9%+/=_-]{40,}+)"),
    Format("aws signature", "x-amz-signature=", r"(?i:x-amz-signature=)(?P<v>[0-9a-f]{64})"),
    Format("google signature", "x-goog-signature=", r"(?i:x-goog-signature=)(?P<v>[0-9a-f]{64,}+)"),
    Format("password", "wifi:", r"(?i:wifi:)[^\n]{0,200}?(?<=[:;])P:(?P<v>(?:\\.|[^;\\\n]){1,100})"),
    Format("password", "/user:", rf"/user:\S{{1,60}} (?!/){_ARGUMENT}"),
    Format("password", "\\\\", rf"\\\\[^\s\\]{{1,60}}\\\S{{1,60}} (?!/){_ARGUMENT}(?= /user:)"),
)


#: Options of programs that take a password: the programs, how the option is written, and the value behind it.
_OPTIONS = (
    (
        r"curl|wget|https?|lftp",
        " -u -a --user --proxy-user --auth",
        (
            r"[ =]?(?:'[^\s:']{1,80}:(?P<a>[^'\n]{2,200})'|\"[^\s:\"]{1,80}:(?P<q>[^\"\n]{2,200})\""
            r"|[^\s:,'\"]{1,80}[:,](?P<v>[^\s'\"]{2,200}))"
        ),
    ),
    (r"mysql\w*|mariadb\w*|7z\w?|u?n?rar", " -p", _ARGUMENT),
    (
        r"sshpass|login|mongo\w*|(?:un)?zip|sqlcmd|rdesktop|ssh-keygen|keytool|gpg|az|openssl|pscp|plink|htpasswd",
        " -p -P -N --pw -passin -passout -storepass -keypass",
        rf"[ =]{_ARGUMENT}",
    ),
    (
        r"\S+",
        (
            " --password --passwd --pass --token --api-key --secret --access-token --auth-token --client-secret"
            " --passphrase"
        ),
        rf"[ =](?![<$({{-]|(?:flag|option|is|and|or|to|argument|param\w*|was|with|for|in|from)\b){_ARGUMENT}",
    ),
    (r"openssl", " -k", rf" {_ARGUMENT}"),
    (r"redis-cli", " -a --pass", rf"[ =]{_ARGUMENT}"),
    (r"ldap\w*", " -w", rf"[ ]?{_ARGUMENT}"),
    (r"smbclient|rpcclient", " -U --user", r"[ =]?['\"]?[^\s%'\"]{1,60}%(?P<v>[^\s'\"]{3,80})"),
)


def _prefixed() -> Iterator[Format]:
    for name, mixed in (("prefixes", ""), ("wordlike", r"(?=[a-z_-]{0,400}+[0-9A-Z])")):
        for label, least, prefixes in _DATA[name]:
            alike = "|".join(map(re.escape, prefixes.split()))
            yield Format(label, prefixes, rf"(?:{alike}){mixed}[A-Za-z0-9_-]{{{least},}}+")


def openings() -> Iterator[tuple[str, Callable[[str, int], Iterator[tuple[int, int, str]]]]]:
    """Every opening, with what looks for the secret there: its start, end and label. One in lower case stands for any
    case."""
    for format_ in (*_prefixed(), *_FORMATS):
        yield from ((one, _look(format_, START)) for one in format_.openings.split())
    for label, literals in _LIBRARY.items():
        yield from ((one, _library_look(label)) for one in literals.split())
    for format_ in _INSIDE:
        yield from ((one, _look(format_, "")) for one in format_.openings.split())
    for programs, options, value in _OPTIONS:
        for option in options.split():
            yield f" {option}", _option_look(programs, option, value)


def _option_look(programs: str, option: str, value: str) -> Callable[[str, int], Iterator[tuple[int, int, str]]]:
    program = cache(lambda: re.compile(rf"(?<!\w)(?:{programs})\s[^\n]{{0,200}}\Z"))
    pattern = cache(lambda: re.compile(re.escape(f" {option}") + value))

    def look(text: str, place: int) -> Iterator[tuple[int, int, str]]:
        match = pattern().match(text, place)
        if match is not None and program().search(text[max(0, place - 220) : place + 1]):
            yield (*_value(match), "password")

    return look


def _look(format_: Format, start: str) -> Callable[[str, int], Iterator[tuple[int, int, str]]]:
    pattern = cache(lambda: re.compile(start + format_.pattern, re.ASCII))

    def look(text: str, place: int) -> Iterator[tuple[int, int, str]]:
        if match := pattern().match(text, max(0, place - format_.back)):
            yield (*_value(match), format_.label)

    return look


def _value(match: re.Match[str]) -> tuple[int, int]:
    return next((match.span(name) for name, value in match.groupdict().items() if value is not None), match.span())


# --- what the kept library knows -----------------------------------------------------------------------------

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
    """Patterns of detect-secrets by our label.

    Imported when a text first holds one of their openings: the import costs 80 ms and 7 MB. Only patterns are
    taken; its scanning of files, its settings and its network verification stay untouched.
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


def _library_look(label: str, *backs: int) -> Callable[[str, int], Iterator[tuple[int, int, str]]]:
    def look(text: str, place: int) -> Iterator[tuple[int, int, str]]:
        for start in (place - back for back in backs or (0,)):
            if start >= 0 and re.compile(START).match(text, start) and (match := _library()[label].match(text, start)):
                # Vendors lengthen their tokens; the length in the pattern is the least.
                tail = re.compile(r"[A-Za-z0-9_-]*+").match(text, match.end() - (match.group()[-1] in "\"'"))
                yield start, tail.end() if tail else match.end(), label
                return

    return look


# --- shapes without an opening -------------------------------------------------------------------------------


def _card(match: re.Match[str]) -> tuple[int, int] | None:
    """As many digits as a network issues (17 and 18, as Discord's ids have, are not), with a right check digit
    (ISO/IEC 7812-1, annex B), in groups as on a card or beside a word for one."""
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
            return match.start(), match.start() + len(number)
    return None


_CARD_LENGTHS = {"2": (16,), "3": (16, 15, 14), "4": (19, 16), "5": (16,), "6": (19, 16), "9": (16,)}
_CARD_GROUPS = {*((n,) for n in range(14, 20)), (4, 4, 4, 4), (4, 4, 4, 4, 3), (8, 8), (4, 6, 5), (4, 6, 4)}
_CARD_WORDS = r"(?i)car[dt]|kart|tarjet|kort|visa|master|amex|cc\b|карт|بطاق|کارت|כרטיס|कार्ड|บัตร|thẻ|卡|カード|카드"
#: A digit to the digit sum of its double.
_DOUBLED = str.maketrans("0123456789", "0246813579")


def _goes_on(match: re.Match[str], at: int) -> bool:
    return match.string[match.start() + at : match.start() + at + 1].isalnum()


def _iban(match: re.Match[str]) -> tuple[int, int] | None:
    """The account, as long as its country's are, if its check digits are right (ISO 13616)."""
    places = [i for i, char in enumerate(match.group()) if char.isalnum()]
    length = _IBAN_LENGTHS.get(match.group()[:2].upper(), 99)
    if length > len(places) or _goes_on(match, places[length - 1] + 1):
        return None
    account = "".join(match.group()[i] for i in places[:length])
    right = int("".join(str(int(char, 36)) for char in account[4:] + account[:4])) % 97 == 1
    return (match.start(), match.start() + places[length - 1] + 1) if right else None


_IBAN_LENGTHS = {one[:2]: int(one[2:]) for one in _DATA["ibans"].split()}


def _mixed(match: re.Match[str]) -> bool:
    value = match.group()
    return any(map(str.isdigit, value)) and any(map(str.islower, value)) and any(map(str.isupper, value))


def _no_hash(match: re.Match[str]) -> bool:
    """Returns whether nothing before it names a transaction or a block, which look the same."""
    before = match.string[max(0, match.start() - 60) : match.start()]
    return (
        re.search(
            r"(?i)\b(?:tx|txid|txn|i[sş]lem\w*|trans[az]\w+|транзак\w*|交易\w*|hash\w*|bloc?k\w*|root|sha\w*|digest|topic\w*)\b",
            before,
        )
        is None
    )


def _words(match: re.Match[str]) -> tuple[int, int] | None:
    """The longest run of words out of one of the lists of BIP 39, twelve or more."""
    words = re.findall(r"[^\W\d_]+", match.group().lower())
    for known in _word_lists():
        line = "".join("x" if word in known else " " for word in words)
        run = re.search(r"x{12,}", line)
        # A wallet's words come from chance, so hardly one twice.
        if run and len(set(words[run.start() : run.end()])) > 9:
            spans = [word.span() for word in re.finditer(r"[^\W\d_]+", match.group())]
            return match.start() + spans[run.start()][0], match.start() + spans[run.end() - 1][1]
    return None


@cache
def _word_lists() -> list[frozenset[str]]:
    """Imported when a text first holds twelve short words in a row."""
    from mnemonic import Mnemonic

    lists = (Mnemonic(language).wordlist for language in Mnemonic.list_languages())
    return [frozenset(folded(normalize("NFC", word)) for word in words) for words in lists]


_TOKEN = "[A-Za-z0-9_-]"  # noqa: S105 - a set of characters
_PART = r"[^\s'\"|*]{3,80}"
_PART_V = rf"['\"]?(?P<v>{_PART})"
_GAP = r"[ \t.\-_/·]{1,3}|\n"
#: Label, a sign that the text must hold, the pattern, and what tells whether a match is one.
SHAPES: tuple[tuple[str, str, str, Callable[[re.Match[str]], object]], ...] = (
    ("card number", "", rf"[234569](?<![A-Za-z0-9_].)(?=(?P<rest>(?:(?:{_GAP})?[0-9]){{13,18}}))", _card),
    ("bank account", "", r"[A-Za-z](?<![A-Za-z0-9_].)[A-Za-z][ .-]?[0-9]{2}(?:[ .-]{0,2}[A-Za-z0-9]){11,40}", _iban),
    ("private key", ",", r"\[(?:\s?[0-9]{1,3}\s?,){63}\s?[0-9]{1,3}\s?\]", bool),
    # Also behind `/bot` in a URL and with an encoded colon (core.telegram.org/bots/api).
    ("telegram token", "", rf"[0-9](?<![0-9].)[0-9]{{5,40}}+(?::|%3A){_TOKEN}{{35,}}+", bool),
    ("wallet key", "", rf"[5KLc](?<![A-Za-z0-9].){_BASE58}{{50,51}}(?![A-Za-z0-9])", _mixed),
    ("private key", "0x", r"0x(?<![A-Za-z0-9]..)[0-9A-Fa-f]{64}(?![A-Za-z0-9])", _no_hash),
    ("recovery key", "-", r"[0-9](?<![0-9-].)[0-9]{5}-(?:[0-9]{6}-){6}[0-9]{6}(?![0-9-])", bool),
    # Neither part may hold a slash.
    (
        "url password",
        "@",
        r"""://[^\s/:@"'<>]{0,256}:(?P<v>[^\s/"'<>]{1,4096})@""",
        lambda match: match["v"].strip("*").lower() not in ("", "password", "passwd", "pass", "pwd", "secret", "pw"),
    ),
    ("password", ":", r":(?<=[\w*].)[0-9]{2,5}:[\w*.-]{1,60}:[\w*.-]{1,60}:(?P<v>[^\s:]{4,200})(?!\S)", bool),
    (
        "password",
        "|",
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
#: The same for the library's, which are told by what stands inside: the sign is searched, the secret begins before.
_ENDINGS = (
    ("azure key", "==", r"(?<=[A-Za-z0-9+/]{86})(?<!sha512-.{86})==", (88, 87, 86)),
    # It has no prefix, but the distance of its two dots is telling.
    ("discord token", ".", rf"\.(?={_TOKEN}{{6}}\.{_TOKEN}{{27}})", (26, 25, 24)),
    ("mailchimp key", "-us", r"(?<=[0-9a-f]{32})-us", (32,)),
)


def shapes(text: str) -> Iterator[Iterator[tuple[int, tuple[int, int, str] | None]]]:
    """For each shape where something like it stands, and the start, end and label if it is a secret."""
    for shape in SHAPES:
        if shape[1] in text:
            yield _shaped(text, *shape)
    for label, sign, source, backs in _ENDINGS:
        if sign in text:
            look, pattern = _library_look(label, *backs), re.compile(source, re.ASCII)
            yield _ended(text, pattern, look)


def _shaped(
    text: str, label: str, _: str, source: str, check: Callable[[re.Match[str]], object]
) -> Iterator[tuple[int, tuple[int, int, str] | None]]:
    for match in re.compile(source, re.MULTILINE | re.ASCII).finditer(text):
        right = check(match)
        span = right if isinstance(right, tuple) else match.span("v" if "v" in match.groupdict() else 0)
        yield match.start(), (*span, label) if right else None


def _ended(
    text: str, pattern: re.Pattern[str], look: Callable[[str, int], Iterator[tuple[int, int, str]]]
) -> Iterator[tuple[int, tuple[int, int, str] | None]]:
    yield from ((match.start(), next(look(text, match.start()), None)) for match in pattern.finditer(text))
