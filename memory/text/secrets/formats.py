"""Secrets that are known by their beginnings: vendors' keys and tokens, and passwords on command lines.

A format opens with one of some literals, at which its pattern is tried. Every pattern is bounded, so that a look
costs no more than a constant. The group `v` of a pattern is the secret; without that group the whole match is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple, TypeAlias

from memory.text.secrets.folding import folded
from memory.text.secrets.vocabulary import any_of, data, words

_DATA = data("formats.yaml")

#: The beginning of a word; the end of an escape, as in JSON and URLs, is no word.
START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_END = r"(?![A-Za-z0-9_])"
_BASE58 = "[1-9A-HJ-NP-Za-km-z]"


Span: TypeAlias = tuple[int, int, str]


class Format(NamedTuple):
    """A format of secrets. `pattern` begins `back` characters before one of the literals `openings`."""

    label: str
    openings: str
    pattern: str
    back: int = 0


_CASES = folded(any_of("cases"))
_SPELT = folded(f"(?:(?:{_CASES}) )?(?:[a-z0-9]|{any_of('digits')}|{any_of('signs')})(?![a-z0-9])")
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
    # Two to five base64url parts, the first of them a JSON object (RFC 7519, RFC 7516).
    Format("json web token", "eyJ", r"eyJ[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{8,8000}+(?:\.[A-Za-z0-9_-]*+){0,3}+"),
    Format("azure secret", "q~", rf"[A-Za-z0-9_~.-]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{31,34}}{_END}", 4),
    Format("terraform token", ".atlasv1", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}+", 14),
    Format(
        "password hash", "$2a$ $2b$ $2y$ $6$ $5$ $y$ $apr1$ $argon2", r"(?<![^\s:'\"=])\$[a-z0-9]{1,8}\$[^\s:'\"]{20,}+"
    ),
    Format(
        "session cookie", "sid= sessionid= session= PHPSESSID= JSESSIONID=", r"\w{3,10}=(?P<v>[A-Za-z0-9%_.+/=-]{24,}+)"
    ),
    # The secret key that people paste right behind its id: forty characters with only signs between them.
    Format(
        "aws secret",
        "AKIA ASIA",
        r"(?:AKIA|ASIA)[0-9A-Z]{16}[^A-Za-z0-9+/]{1,6}(?:secret[^A-Za-z0-9+/]{1,6})?"
        r"(?=[a-z0-9+/]{0,39}[A-Z])(?=[A-Z0-9+/]{0,39}[a-z])(?P<v>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=_-])",
    ),
)
#: Formats with a telling part that may stand anywhere, with the secret behind it.
_INSIDE = (
    # PEM blocks (RFC 7468), with escaped line ends too. One that was cut off is masked as far as it is base64.
    Format(
        "private key",
        "-----begin",
        rf"-----BEGIN {_NAME}(?:(?:[^-]|-(?!----))*+-----END {_NAME}|(?:(?:\s|\\[nr]){{0,4}}[A-Za-z0-9+/=]{{20,}}+)*+)",
    ),
    # The private half of a key file of PuTTY.
    Format(
        "private key", "private-lines:", r"(?i:private-lines:) ?[0-9]{1,3}\s{1,2}(?P<v>(?:[A-Za-z0-9+/=]{20,80}\s?)+)"
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
    # Spelt out, sign by sign: "capital A, small r, dollar sign, nine".
    Format(
        "password",
        " ".join(sorted(words("cases"))),
        rf"(?i:{_SPELT}(?:[ ,.-]{{1,3}}(?:and |then )?{_SPELT}){{3,20}}+)",
    ),
    Format("password", "auth=(", r"""auth=\(\s?["'][^"'\n]{1,80}["'],\s?["'](?P<v>[^"'\n]{3,200})["']"""),
    Format("password", "securestring", r"""(?i:securestring)(?:\s-\w{1,20}){0,2}\s["'](?P<v>[^"'\n]{3,200})["']"""),
    Format("password", "wifi:", r"(?i:wifi:)[^\n]{0,200}?(?<=[:;])P:(?P<v>(?:\\.|[^;\\\n]){1,100})"),
    Format("password", "/user:", rf"/user:\S{{1,60}} (?!/){_ARGUMENT}"),
    Format("password", "\\\\", rf"\\\\[^\s\\]{{1,60}}\\\S{{1,60}} (?!/){_ARGUMENT}(?= /user:)"),
)


#: Options of programs that take a password: the programs, the spellings of the option, and the value behind it.
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


def openings() -> Iterator[tuple[str, Callable[[str, int], Iterator[Span]]]]:
    """Yields every opening, with a function that finds the start, end and label of the secret there.

    One in lower case stands for any case.
    """
    for format_ in (*_prefixed(), *_FORMATS):
        yield from ((one, _look(format_, START)) for one in format_.openings.split())
    for label, literals in _LIBRARY.items():
        yield from ((one, _library_look(label)) for one in literals.split())
    for format_ in _INSIDE:
        yield from ((one, _look(format_, "")) for one in format_.openings.split())
    for programs, options, value in _OPTIONS:
        for option in options.split():
            yield f" {option}", _option_look(programs, option, value)


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
