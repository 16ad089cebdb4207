"""Secrets that are known by their beginnings: vendors' keys and tokens, and passwords on command lines.

A format opens with one of some literals, at which its pattern is tried. Every pattern is bounded, so that a look
costs no more than a constant. The group `v` of a pattern is the secret; without that group the whole match is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple, TypeAlias

from memory.text.secrets.folding import any_of, data, folded, words

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
