"""Masks secrets in text.

Invariants: pure, in time linear in the text and bounded for what is read closely; idempotent; nothing but the
secrets themselves changes, and a mark that is set is never read as a secret again. This is a filter for what people
paste by mistake, not a boundary: a password in the middle of prose, without a word that announces it, passes.

How it stays idempotent: every check looks only at ASCII word characters around a find, begins at the start of such
a word, and the mark swallows the rest of the word; a find that a mark of an earlier pass cuts short is dropped. So
setting one mark can't open or close the way for another find beside it.

How it stays fast: `spots` names the places where a secret may begin, and only they are read, each reading paid from
a fixed stock. No text that people write comes near its end. In one that does, made of hardly anything but openings,
all from there on is masked as one: what was not read may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from memory.learn.spots import Openings

#: Looks paid for one text. A megabyte of code, prose or logs takes a few thousand; a thousand secrets fit.
_STOCK: Final = 14_000
#: What a look costs beside when there is something, and when it is a secret. Its mark is looked at for less, so that
#: a second pass never stops earlier than the first.
_MATCH_COSTS: Final = 2
_FIND_COSTS: Final = 4
#: Characters that are read for the price of one look.
_PER_LOOK: Final = 64
#: How much of a value decides whether it looks like a secret.
_JUDGED: Final = 400
_MARK: Final = r"\[secret: [a-z ]{3,30}\]"
_REST: Final = "everything from here on"


class _Find(NamedTuple):
    """A secret: where it stands, what it is called, and the whole stretch that gave it away. Of two that begin at
    one place the lower `rank` names it."""

    start: int
    end: int
    label: str
    since: int
    until: int
    rank: int = 0


class _Token(NamedTuple):
    """Keys that a vendor marks with a prefix; `least` counts the letters, digits, hyphens and underscores right
    behind it; `tail` is the pattern of all that follows, where that is not simply at least so many of them."""

    prefix: str
    label: str
    least: int
    tail: str = ""


#: Prefixes as the vendors' own documentation and secret-scanning partners publish them; those of GitHub
#: (classic), Stripe (live), Slack (classic), SendGrid, AWS, Square, Twilio, Mailchimp, Azure and Discord
#: come from detect-secrets below. The longest prefix of a family stands first.
_TOKENS = (
    _Token("sk-ant-", "anthropic key", 20),
    _Token("sk-or-", "openrouter key", 20),
    _Token("sk-lf-", "langfuse key", 20),
    _Token("sk-", "openai key", 20),
    _Token("AIza", "google key", 35),
    _Token("GOCSPX-", "google client secret", 20),
    _Token("ya29.", "google token", 20),
    _Token("1//0", "google token", 30),
    _Token("github_pat_", "github token", 22),
    _Token("glpat-", "gitlab token", 20),
    _Token("gldt-", "gitlab token", 20),
    _Token("glrt-", "gitlab token", 20),
    _Token("glptt-", "gitlab token", 20),
    _Token("gloas-", "gitlab token", 20),
    _Token("glcbt-", "gitlab token", 20),
    _Token("glagent-", "gitlab token", 20),
    _Token("glsoat-", "gitlab token", 20),
    _Token("glffct-", "gitlab token", 20),
    _Token("glimt-", "gitlab token", 20),
    _Token("xapp-", "slack token", 20),
    _Token("xoxc-", "slack token", 20),
    _Token("xoxd-", "slack token", 20),
    _Token("xoxe-", "slack token", 20),
    _Token("sk_test_", "stripe key", 24),
    _Token("rk_test_", "stripe key", 24),
    _Token("whsec_", "webhook secret", 24),
    _Token("sk_", "elevenlabs key", 48, r"[a-f0-9]{48}(?![A-Za-z0-9_])"),
    _Token("hf_", "hugging face token", 30),
    _Token("npm_", "npm token", 36),
    _Token("pypi-AgE", "pypi token", 50),
    _Token("rubygems_", "rubygems key", 40),
    _Token("AKC", "artifactory key", 50),
    _Token("gsk_", "groq key", 40),
    _Token("xai-", "xai key", 40),
    _Token("pplx-", "perplexity key", 40),
    _Token("tvly-", "tavily key", 20),
    _Token("nvapi-", "nvidia key", 40),
    _Token("jina_", "jina key", 40),
    _Token("pcsk_", "pinecone key", 40),
    _Token("lsv2_", "langsmith key", 32),
    _Token("r8_", "replicate token", 30),
    _Token("dop_v1_", "digitalocean token", 40),
    _Token("doo_v1_", "digitalocean token", 40),
    _Token("dor_v1_", "digitalocean token", 40),
    _Token("HRKU-", "heroku key", 36),
    _Token("v1.0-", "cloudflare key", 120),
    _Token("fo1_", "fly token", 40),
    _Token("fm2_", "fly token", 10, r"[A-Za-z0-9_+/=-]{40,}+"),
    _Token("nfp_", "netlify token", 36),
    _Token("rnd_", "render key", 28),
    _Token("pul-", "pulumi token", 40, r"[a-f0-9]{40}(?![A-Za-z0-9_])"),
    _Token("ntn_", "notion token", 40),
    _Token("secret_", "notion token", 43, r"[A-Za-z0-9]{43}(?![A-Za-z0-9_])"),
    _Token("lin_api_", "linear key", 30),
    _Token("lin_oauth_", "linear key", 30),
    _Token("shpat_", "shopify token", 32),
    _Token("shpca_", "shopify token", 32),
    _Token("shppa_", "shopify token", 32),
    _Token("shpss_", "shopify secret", 32),
    _Token("EAAA", "square token", 56),
    _Token("EAA", "facebook token", 90),
    _Token("sq0atp-", "square token", 22),
    _Token("glsa_", "grafana token", 32),
    _Token("glc_ey", "grafana token", 10, r"[A-Za-z0-9_+/=-]{32,}+"),
    _Token("sntrys_", "sentry token", 40),
    _Token("sntryu_", "sentry token", 40),
    _Token("NRAK-", "new relic key", 27),
    _Token("PMAK-", "postman key", 50),
    _Token("figd_", "figma token", 36),
    _Token("sbp_", "supabase token", 40),
    _Token("sb_secret_", "supabase token", 20),
    _Token("pscale_pw_", "planetscale password", 30),
    _Token("pscale_tkn_", "planetscale token", 30),
    _Token("dckr_pat_", "docker token", 20),
    _Token("dckr_oat_", "docker token", 20),
    _Token("hvs.", "vault token", 24),
    _Token("hvb.", "vault token", 24),
    _Token("hvr.", "vault token", 24),
    _Token("dp.pt.", "doppler token", 40),
    _Token("dp.st.", "doppler token", 0, r"[A-Za-z0-9_.-]{40,}+"),
    _Token("dapi", "databricks token", 32),
    _Token("tskey-", "tailscale key", 20),
    _Token("ATATT3", "atlassian token", 50),
    _Token("LTAI", "alibaba key", 12),
    _Token("AKID", "tencent key", 28),
    _Token("AGE-SECRET-KEY-1", "age key", 50),
    _Token("ops_eyJ", "onepassword token", 100),
    _Token("key-", "mailgun key", 32, r"[a-f0-9]{32}(?![A-Za-z0-9_])"),
    # A Discord interaction token is base64 of "interaction:..."; it lets its holder answer for the bot.
    _Token("aW50ZXJhY3Rpb246", "discord interaction token", 40),
    _Token("pat", "airtable token", 14, r"[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _Token("APA91b", "firebase key", 100),
    _Token("xoxe.xox", "slack token", 2, r"[bp]-[0-9A-Za-z-]{20,}+"),
    # Two to five base64url parts of which the first is a JSON object (RFC 7519, RFC 7516).
    _Token("eyJ", "json web token", 8, r"[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){0,3}+"),
)
#: Prefixes that also begin ordinary hyphenated words; their tail must hold a digit or a capital.
_WORDLIKE = frozenset({"sk-", "xai-", "glrt-", "gldt-", "glimt-", "xapp-", "tskey-"})

#: Label, openings and the least count of token characters behind them, of the formats that come from detect-secrets.
_KNOWN = (
    ("aws key", ("AKIA", "ASIA", "ABIA", "ACCA"), 16),
    ("github token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), 36),
    ("sendgrid key", ("SG.",), 22),
    ("slack token", ("xoxa-", "xoxb-", "xoxp-", "xoxo-", "xoxs-", "xoxr-"), 2),
    ("square secret", ("sq0csp-",), 43),
    ("stripe key", ("sk_live_", "rk_live_"), 24),
    ("twilio key", ("AC", "SK"), 32),
)


def redact(text: str) -> str:
    """Return `text` with every secret replaced by a mark such as `[secret: openai key]`.

    Masked are vendor keys and tokens, private key blocks, JSON web tokens, `Authorization` and bearer
    values, passwords in URLs, values announced by a word ("my password is ...", `api_key=...`, 密码是...),
    seed phrases and payment card numbers (13 to 19 digits in a card's grouping, a card's first digits,
    right Luhn sum). Not masked are mail addresses, phone numbers, bank accounts (an IBAN is given to be paid to, it
    opens nothing) and one-time codes: they are what people want remembered, or soon worthless. Never raises; the
    time is linear in the length of the text. One with thousands of openings is masked from some point on.
    """
    reading = _Reading(text)
    finds, end = _finds(reading)
    if not finds and end == len(text):
        return text
    parts: list[str] = []
    last = 0
    for found in _merged(sorted(finds, key=lambda find: (find.start, find.rank)), text):
        if found.start >= end:
            break
        parts += (text[last : found.start], f"[secret: {found.label}]")
        last = found.end
    if last < end or end == len(text):
        parts.append(text[last:end])
    if end < len(text):
        parts.append(f"[secret: {_REST}]")
    return "".join(parts)


def openings() -> tuple[str, ...]:
    """All that a secret may begin with or be announced by, for those who measure."""
    return tuple(dict.fromkeys((*(one for one, _ in _openings().tokens), *(one for one, _ in _openings().words))))


class _Reading:
    """A text and what is left of the stock: every look at the text is paid."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.left = _STOCK

    def match(self, source: str, at: int) -> re.Match[str] | None:
        """The match of a pattern that begins at `at`."""
        match = _pattern(source).match(self.text, at)
        if match is not None:
            self.left -= _MATCH_COSTS + (match.end() - match.start()) // _PER_LOOK
        return match


_Check: TypeAlias = Callable[[_Reading, int], "_Find | None"]


def _finds(reading: _Reading) -> tuple[list[_Find], int]:
    """All finds, in no order, up to the second value: the end of what was read."""
    text, checks, marked = reading.text, _checks(), 0
    finds: list[_Find] = []
    # Every place costs one look or more.
    for place in _openings().places(text, _STOCK + 1):
        opening = text[place : place + 3].lower()
        tried = checks.get(opening) or checks.get(opening[:2]) or checks.get(opening[0]) or ()
        inside = place < marked
        if not inside and text.startswith("[secret: ", place - 1) and (mark := _pattern(_MARK).match(text, place - 1)):
            inside, marked = True, mark.end()
        reading.left -= 1 if inside else max(1, len(tried))
        if reading.left < 0:
            # A place can stand behind the beginning of its secret: back to a gap between words.
            gap = _pattern(r"\S{0,200}\Z").search(text, max(0, place - 200), place)
            return finds, gap.start() if gap else place
        for rank, check in () if inside else tried:
            found = check(reading, place)
            if found is not None:
                finds.append(found._replace(rank=rank))
                reading.left -= _FIND_COSTS
    return finds, len(text)


def _merged(finds: Iterable[_Find], text: str) -> Iterator[_Find]:
    """Finds as disjoint stretches in order, whole words, without those that touch an earlier pass's mark."""
    marked = "[secret: " in text
    current: _Find | None = None
    for found in finds:
        if marked and _touches_mark(text, found):
            continue
        end = _end_of(r"[A-Za-z0-9_]*+", text, found.end)
        if current is None or found.start >= current.end:
            if current is not None:
                yield current
            current = found._replace(end=end)
        elif end > current.end:
            current = current._replace(end=end)
    if current is not None:
        yield current


def _touches_mark(text: str, found: _Find) -> bool:
    # A mark has at most forty characters.
    marks = _pattern(_MARK).finditer(text, max(0, found.since - 41), found.until + 41)
    return any(mark.start() <= found.until and mark.end() >= found.since for mark in marks)


def _end_of(run: str, text: str, start: int) -> int:
    """Where the run of characters that begins at `start`, and may be empty, ends."""
    match = _pattern(run).match(text, start)
    return match.end() if match else start


@cache
def _openings() -> Openings:
    return Openings(
        tokens=[(token.prefix, token.least) for token in _TOKENS]
        + [(opening, least) for _, openings, least in _KNOWN for opening in openings],
        words=[(word.stem, "" if word.stem[0] >= _FIRST_CJK else word.after + _LEADS) for word in _WORDS]
        + [(opening, "") for opening, _ in _OTHERS],
    )


@cache
def _checks() -> dict[str, list[tuple[int, _Check]]]:
    """What to try at a place, with its rank, by up to three characters there in lower case; the longest key that is
    known holds what all of its beginnings hold."""
    checks: dict[str, list[tuple[int, _Check]]] = {}
    ordered: list[tuple[str, _Check]] = [(token.prefix, _prefixed(token)) for token in _TOKENS]
    ordered += [("://", _in_url), (":", _telegram), ("%3A", _telegram), (".", _discord), ("==", _azure)]
    ordered += [(digit, _card) for digit in _CARD_LENGTHS]
    # Openings that differ behind their third character only are tried at once.
    known = dict.fromkeys((opening[:3], label) for label, openings, _ in _KNOWN for opening in openings)
    ordered += [(opening, _known(label)) for opening, label in known]
    ordered += _OTHERS
    ordered += [(word.stem, _announced(word)) for word in _WORDS]
    for rank, (opening, check) in enumerate(ordered):
        checks.setdefault(opening[:3].lower(), []).append((rank, check))
    for opening in checks:
        for shorter in (opening[:length] for length in range(1, len(opening))):
            checks[opening] += checks.get(shorter, [])
    return checks


@cache
def _pattern(source: str) -> re.Pattern[str]:
    """Patterns are compiled when first needed, so that importing this module costs nothing. ASCII only,
    because what a vendor issues is ASCII."""
    return re.compile(source, re.ASCII)


def _begins_word(text: str, start: int) -> bool:
    """Whether no ASCII word runs up to `start`; an escape (`\\n`, `%3D`) as in JSON and URLs is no word."""
    if start == 0 or text[start - 1] not in _IN_WORDS:
        return True
    before = text[max(0, start - 3) : start]
    return ("\\" in before or "%" in before) and _pattern(r"(?s:.{0,2})(?:\\[nrt]|%[0-9A-Fa-f]{2})\Z").match(
        before
    ) is not None


_IN_WORDS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")


# --- what vendors issue ------------------------------------------------------------------------------------


def _prefixed(token: _Token) -> _Check:
    # The possessive tail is read once.
    tail = token.tail or rf"[A-Za-z0-9_-]{{{token.least},}}+"
    mixed = rf"(?=[a-z_-]{{0,{_JUDGED}}}+[0-9A-Z])" if token.prefix in _WORDLIKE else ""
    source = re.escape(token.prefix) + mixed + tail

    def check(reading: _Reading, place: int) -> _Find | None:
        if not reading.text.startswith(token.prefix, place) or not _begins_word(reading.text, place):
            return None
        match = reading.match(source, place)
        return _Find(place, match.end(), token.label, place, match.end()) if match else None

    return check


def _telegram(reading: _Reading, place: int) -> _Find | None:
    """`<bot id>:<35 characters>`, also behind `/bot` in a URL and with an encoded colon
    (core.telegram.org/bots/api)."""
    match = reading.match(r"(?::(?<=[0-9]{6}:)|%3A(?<=[0-9]{6}%3A))[A-Za-z0-9_-]{35,}+", place)
    if match is None:
        return None
    start = _start_of_run(r"[0-9]{0,40}\Z", reading.text, place, 40)
    return _Find(start, match.end(), "telegram token", start, match.end())


def _start_of_run(run: str, text: str, end: int, longest: int) -> int:
    match = _pattern(run).search(text, max(0, end - longest), end)
    return match.start() if match else end


def _private_key(reading: _Reading, place: int) -> _Find | None:
    """PEM blocks (RFC 7468), with escaped line ends too. One that was cut off is masked as far as it is
    base64. `place` is behind the first dashes."""
    name = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    whole = rf"(?:[^-]|-(?!----))*+-----END {name}"
    cut_off = r"(?:(?:\s|\\[nr]){0,4}[A-Za-z0-9+/=]{20,}+)*+"
    start = place - len("-----")
    match = reading.match(rf"-----BEGIN {name}(?:{whole}|{cut_off})", start) if start >= 0 else None
    if match is None:
        return None
    # Behind its dashes a block is whole whatever follows; cut off, what follows may belong to it.
    return _Find(start, match.end(), "private key", start, match.end() - match.group().endswith("-"))


def _in_url(reading: _Reading, place: int) -> _Find | None:
    # Neither part may hold a slash.
    match = reading.match(r"""://[^\s/:@"'<>]{0,256}:([^\s/"'<>]{1,4096})@""", place)
    if match is None or not match.group(1).strip("*"):
        return None
    return _Find(match.start(1), match.end(1), "url password", match.start(), match.end())


def _in_path(source: str, label: str) -> _Check:
    """A check for what stands in a URL behind a part that tells it; the secret is the pattern's only group."""

    def check(reading: _Reading, place: int) -> _Find | None:
        match = reading.match(source, place)
        return _Find(match.start(1), match.end(1), label, place, match.end()) if match else None

    return check


#: First digit of a card to how many it has (ISO/IEC 7812 ranges of the networks in use). That 17 and 18 are
#: missing matters: so long are Discord's ids.
_CARD_LENGTHS = {"2": (16,), "3": (14, 15, 16), "4": (16, 19), "5": (16,), "6": (16, 19)}


def _card(reading: _Reading, place: int) -> _Find | None:
    """Payment cards: in one piece or grouped as printed, a network's first digits, a right check digit."""
    if not _begins_card(reading.text, place):
        return None
    match = reading.match(
        r"(?:4[0-9]|5[1-5]|2[2-7]|3[04-9]|6[0245])"
        r"(?:[0-9]{12,17}"
        r"|[0-9]{2}(?:([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1?[0-9]{3})?|([ -])[0-9]{6}\2[0-9]{4,5}))"
        r"(?![A-Za-z0-9_])",
        place,
    )
    if match is None:
        return None
    digits = match.group().replace(" ", "").replace("-", "")
    if len(digits) not in _CARD_LENGTHS[digits[0]] or not _luhn(digits):
        return None
    return _Find(place, match.end(), "card number", place, match.end())


def _begins_card(text: str, place: int) -> bool:
    return place == 0 or text[place - 1] not in _IN_WORDS


def _luhn(digits: str) -> bool:
    """ISO/IEC 7812-1, annex B: from the right, every second digit is doubled and its own digits added."""
    codes = digits.encode()
    total = sum(codes[::-1][::2]) + sum(codes[-2::-2].translate(_DOUBLED)) - ord("0") * len(codes)
    return total % 10 == 0


#: Digit characters to the digit sum of their double, as characters; bytes keep ten times the pace of a list
#: of ints.
_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")


# --- what the kept library knows ---------------------------------------------------------------------------


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

    one_of_two = "|".join(pattern.pattern for pattern in TwilioKeyDetector.denylist)
    return {
        # The second AWS pattern reads secrets behind a variable's name; that is `_announced` here.
        "aws key": AWSKeyDetector.denylist[0],
        "azure key": AzureStorageKeyDetector.denylist[0],
        "discord token": DiscordBotTokenDetector.denylist[0],
        "github token": GitHubTokenDetector.denylist[0],
        "mailchimp key": MailchimpDetector.denylist[0],
        "sendgrid key": SendGridDetector.denylist[0],
        # The second Slack pattern masks a webhook's whole URL; `_in_path` masks its secret part.
        "slack token": SlackDetector.denylist[0],
        "square secret": SquareOAuthDetector.denylist[0],
        "stripe key": StripeDetector.denylist[0],
        "twilio key": re.compile(one_of_two),
    }


def _known(label: str) -> _Check:
    def check(reading: _Reading, place: int) -> _Find | None:
        return _in_library(reading, label, place)

    return check


def _in_library(reading: _Reading, label: str, start: int) -> _Find | None:
    """What the library's pattern finds at `start`, if a word begins there."""
    if start < 0 or not _begins_word(reading.text, start):
        return None
    match = _library()[label].match(reading.text, start)
    if match is None:
        return None
    # Vendors lengthen their tokens; the length in the pattern is the least.
    end = _end_of(r"[A-Za-z0-9_-]*+", reading.text, match.end() - (match.group()[-1] in "\"'"))
    reading.left -= (end - start) // _PER_LOOK
    return _Find(start, end, label, start, end)


def _ending_at(label: str, *lengths: int) -> _Check:
    """A check for what has so many characters before the place that gives it away."""

    def check(reading: _Reading, place: int) -> _Find | None:
        found = (_in_library(reading, label, place - length) for length in lengths)
        return next((one for one in found if one is not None), None)

    return check


_azure = _ending_at("azure key", 88, 87, 86)
# It has no prefix, but the distance of its two dots is telling.
_discord = _ending_at("discord token", 26, 25, 24)


def _aws_pair(reading: _Reading, place: int) -> _Find | None:
    """The secret key that people paste right behind its id: forty characters with nothing but signs between."""
    match = reading.match(
        r"(?:AKIA|ASIA)[0-9A-Z]{16}[^A-Za-z0-9+/]{1,6}(?:secret[^A-Za-z0-9+/]{1,6})?"
        r"(?=[a-z0-9+/]{0,39}[A-Z])(?=[A-Z0-9+/]{0,39}[a-z])([A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=_-])",
        place,
    )
    if match is None or not _begins_word(reading.text, place):
        return None
    return _Find(match.start(1), match.end(1), "aws secret", match.start(1), match.end(1))


def _before(count: int, source: str, label: str) -> _Check:
    """A check for a pattern that begins a word so many characters before the place."""

    def check(reading: _Reading, place: int) -> _Find | None:
        start = place - count
        match = reading.match(source, start) if start >= 0 else None
        if match is None or not _begins_word(reading.text, start):
            return None
        return _Find(start, match.end(), label, start, match.end())

    return check


#: What is told by something in it rather than by its first characters. An opening may stand anywhere.
_OTHERS: tuple[tuple[str, _Check], ...] = (
    ("begin ", _private_key),
    ("webhooks/", _in_path(r"webhooks/[0-9]{15,21}/([A-Za-z0-9_-]{30,}+)", "webhook token")),
    ("interactions/", _in_path(r"interactions/[0-9]{15,21}/([A-Za-z0-9_-]{30,}+)", "webhook token")),
    (
        "hooks.slack",
        _in_path(r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9_/-]{20,}+)", "webhook token"),
    ),
    ("sig=", _in_path(r"sig=([A-Za-z0-9%+/=_-]{40,}+)", "azure signature")),
    ("x-amz-sig", _in_path(r"(?i:x-amz-signature=)([0-9a-f]{64})", "aws signature")),
    ("x-goog-sig", _in_path(r"(?i:x-goog-signature=)([0-9a-f]{64,}+)", "google signature")),
    ("-us", _ending_at("mailchimp key", 32)),
    ("akia", _aws_pair),
    ("asia", _aws_pair),
    ("q~", _before(4, r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_])", "azure secret")),
    (".atlasv1", _before(14, r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}+", "terraform token")),
)


# --- secrets that a word announces -------------------------------------------------------------------------


class _Word(NamedTuple):
    """A word that announces a secret: its `stem`, in lower case, the pattern of its `rest`, the `kind` of what may
    count as the value after it (see `_value`), and the characters that `rest` may begin with."""

    stem: str
    rest: str
    kind: str
    label: str
    after: str = ""


_WORDS = (
    _Word("pass", r"(?:word|wd|code|wort)(?P<plural>s)?", "password", "password", "wc"),
    _Word("pass", r"(?<![A-Za-z0-9]pass)", "short", "password"),
    _Word("pwd", r"(?P<plural>s)?", "password", "password", "s"),
    _Word("pw", r"(?<![A-Za-z0-9]pw)", "short", "password"),
    _Word("kennwort", "", "password", "password"),
    _Word("contraseña", r"(?P<plural>s)?", "password", "password", "s"),
    _Word("clave", r"(?P<plural>s)?", "code", "password", "s"),
    _Word("senha", r"(?P<plural>s)?", "password", "password", "s"),
    _Word("mot de passe", "", "password", "password"),
    _Word("парол", r"[ья]?(?P<plural>и)?", "password", "password", "ьяи"),
    _Word("パスワード", "", "password", "password"),
    _Word("비밀번호", "", "password", "password"),
    _Word("비번", "", "code", "password"),
    _Word("암호", "", "code", "password"),
    _Word("密码", "", "password", "password"),
    _Word("密碼", "", "password", "password"),
    _Word("口令", "", "password", "password"),
    _Word("pin", r"(?: ?code| number|码)?(?P<plural>s)?", "pin", "pin", " cns码"),
    _Word("暗証番号", "", "pin", "pin"),
    _Word("passphrase", r"(?P<plural>s)?", "line", "passphrase", "s"),
    _Word("seed phrase", r"(?P<plural>s)?", "phrase", "seed phrase", "s"),
    _Word("seed words", "", "phrase", "seed phrase"),
    _Word("recovery phrase", r"(?P<plural>s)?", "phrase", "seed phrase", "s"),
    _Word("mnemonic", r"(?: phrase)?(?P<plural>s)?", "phrase", "seed phrase", " s"),
    _Word("助记词", "", "phrase", "seed phrase"),
    _Word("api", r"[ _-]?(?:key|token|secret)(?P<plural>s)?", "key", "api key", " _-kts"),
    _Word("access", r"[ _-]?key(?P<plural>s)?", "key", "access key", " _-k"),
    _Word("account", r"[ _-]?key(?P<plural>s)?", "key", "access key", " _-k"),
    _Word("private", r"[ _-]?key(?P<plural>s)?", "key", "private key", " _-k"),
    _Word("secret", r"(?:[ _-]?(?:access[ _-]?)?key)?(?P<plural>s)?", "key", "secret", " _-ks"),
    _Word("token", r"(?P<plural>s)?", "key", "token", "s"),
    _Word("密钥", "", "key", "api key"),
    _Word("密鑰", "", "key", "api key"),
    _Word("令牌", "", "key", "token"),
    _Word("authorization", "", "header", "authorization"),
    _Word("bearer", "", "bearer", "bearer token"),
)

#: Kana, ideographs and Hangul stand behind all alphabets that write spaces.
_FIRST_CJK = "\u3040"
#: What follows a word and makes the next thing its value: closing quotes, "for the wifi", then a sign or a
#: verb; or nothing but a space (in Chinese not even that).
_LEADS_TO = (
    r"""(?:[\\"'`*\])]{0,4}(?: (?:for|to|of|on|at)(?: [^\s:=：就是为為改设設は는은]{1,24}+){1,4}?)?"""
    r"(?P<sign>[ \t]{0,3}(?::=|=>|->|[:=：＝])[ \t]{0,4}\n?[ \t]{0,4}"
    r"| {1,2}(?:is|was|are|ist|lautet|es|est|é|это|=|[-–—])(?: now)?:? {1,2}"
    r"| {0,2}(?:就是|是|为|為|改成|改为|设为|設為|は|는|은)[ :：]{0,3})"
    r"|(?P<bare>[ ：]{1,2})(?=[!-/:-~]{0,64}+[0-9]))"
)
#: What it may begin with; in Chinese and its neighbours, with anything.
_LEADS = "\\\"'`*]) \t:=-：＝就是为為改设設は는은"
_LEADS_TO_IN_CJK = _LEADS_TO.replace("[ ：]{1,2})", "[ ：]{0,2})")
#: Keys without a digit are so rare that looking for one first is worth it: most talk of tokens ends here.
_DIGIT_AHEAD = r"(?=[^\s0-9]{0,64}+[0-9])"
_SCHEME = r"""(?:\\?["'])?(?P<scheme>(?:bearer|basic|token|bot|digest|apikey) {1,3})?"""

_QUOTED = (
    r"""\\?(?:"([^"\n]{4,400}?)\\?"|'([^'\n]{4,400}?)\\?'|`([^`\n]{4,400})`"""
    r"|“([^”\n]{4,400})”|「([^」\n]{4,400})」)"
)
#: Unquoted values: visible ASCII, Latin, Greek and Cyrillic letters. Chinese text and punctuation end them.
_BARE = r"""(?![\\"'`])[!-~\u00c0-\u04ff]{4,}+"""
#: What machines issue keeps to base64 and its URL-safe relatives, so that `token:...@host` ends in time.
_BARE_KEY = r"[A-Za-z0-9+/=_.~:%-]{4,}+"
_QUOTES = frozenset("\\\"'`“「")
_ENDS_SENTENCE = r"""["'”’)\]]?(?:[.,!?;。，！？；]|[ \t]{0,3}(?:\n|\Z))"""
#: The mnemonics of BIP 39 have 12 to 24 words of three to eight letters.
_SEED_PHRASE = (
    r"""["'“]?((?:[A-Za-z]{3,8}[ ,]{1,2}){11,23}[A-Za-z]{3,8}"""
    r"|(?:[A-Za-z]{3,8}\n){11,23}[A-Za-z]{3,8})(?![A-Za-z])"
)

#: What stands where a password would, in prose, in code and in forms.
_NO_PASSWORD = frozenset(
    """
    again also always anything available case compromised correct default different easy empty enough
    exactly false fine forgot forgotten gone good hard hash here hidden incorrect invalid just kept
    known later left long lost mandatory maybe missing must never none null okay only optional please
    random required reset right safe same secret secure sent short simple something still string strong
    that there this true undefined unique unknown valid very visible weak what where which wrong yes
    your yours
    """.split()  # noqa: SIM905 - a word list reads better than sixty literals
)
_EMPHASIS = "*_~()[]!-"
#: Endings of what is told of a password ("is expired", "is working", "is guessable").
_TELLING = ("ed", "ing", "able", "ible", "ly")


def _announced(word: _Word) -> _Check:
    """A check for the value behind a word that announces it."""
    source = "".join(map(_in_either_case, word.stem)) + rf"(?i:{word.rest})"
    source += rf"(?i:{_LEADS_TO_IN_CJK if word.stem[0] >= _FIRST_CJK else _LEADS_TO})"
    if word.kind == "header":
        source += rf"(?i:{_SCHEME})"
    elif word.kind in ("key", "pin", "bearer"):
        source += _DIGIT_AHEAD
    first = word.stem[0]

    def check(reading: _Reading, place: int) -> _Find | None:
        match = reading.match(source, place)
        if match is None:
            return None
        value = _value(reading, match, word.kind, cjk=first >= _FIRST_CJK)
        return _Find(value[0], value[1], word.label, place, value[2]) if value is not None else None

    return check


def _in_either_case(char: str) -> str:
    return f"[{char}{char.upper()}]" if char.isalpha() and char != char.upper() else re.escape(char)


def _value(reading: _Reading, match: re.Match[str], kind: str, *, cjk: bool) -> tuple[int, int, int] | None:
    """Start and end of the value behind an announcing word, and how far was read; None: no secret."""
    text, sign = reading.text, (match["sign"] or "").strip()
    explicit = sign != "" and not sign.strip(":：=＝><-")
    if kind in ("phrase", "line"):
        source = _SEED_PHRASE if kind == "phrase" else r"([^\n]{4,200})"
        phrase = reading.match(source, match.end()) if explicit or (sign and kind == "phrase") else None
        return (*phrase.span(1), phrase.end()) if phrase else None
    if not sign and kind not in ("password", "code", "header", "bearer"):
        return None
    span = _stretch(reading, match.end(), _BARE if kind in ("password", "code", "short") else _BARE_KEY)
    if span is None:
        return None
    value = text[span[0] : min(span[1], span[0] + _JUDGED)]
    if kind in ("password", "code"):
        plural = "plural" in match.re.groupindex and bool(match["plural"])
        # A plain word is taken when the sentence ends with it. Chinese and its neighbours go on without a
        # space; what stands there in Latin letters is the value.
        final = cjk or sign in ("=", ":=", "：", "＝") or _ends_sentence(text, span[1])
        plain = kind == "password" and sign not in ("", "-", "–", "—") and final and not plural
        secret = (plain and _may_be_plain_password(value)) or _is_password(value, bare=not sign, plural=plural)
    elif kind == "short":
        secret = explicit and sign != "-" and _mixed(value) and len(value) >= 6
    elif kind == "header":
        secret = _mixed(value) or match["scheme"] is not None
    elif kind == "pin":
        part_of_word = match.start() > 0 and text[match.start() - 1].isalpha()
        secret = not (part_of_word and not cjk) and value.isdigit() and len(value) <= 8
    elif kind == "bearer":
        secret = _mixed(value) and len(value) >= 20
    else:
        code = bool(set(value) & set("()[]{}$<>"))
        secret = not code and _mixed(value) and len(value) >= (8 if explicit else 12)
    return span if secret else None


def _stretch(reading: _Reading, start: int, bare: str) -> tuple[int, int, int] | None:
    """What stands at `start` as one value, in quotes or not: its start, its end, and how far was read."""
    text = reading.text
    quoted = reading.match(_QUOTED, start) if text[start : start + 1] in _QUOTES else None
    if quoted is not None:
        start, end = quoted.span(quoted.lastindex or 0)
        until = end
    else:
        unquoted = reading.match(bare, start)
        if unquoted is None:
            return None
        until = unquoted.end()
        tail = text[max(start, until - _JUDGED) : until]
        end = until - len(tail) + len(tail.rstrip(".,:;?)]}|\"'`"))
    value = text[start : min(end, start + _JUDGED)]
    placeholder = len(value) < 4 or value[0] in "<{$%(" or "://" in value or not value.strip("*•.-_xX")
    return None if placeholder else (start, end, until)


def _ends_sentence(text: str, end: int) -> bool:
    return _pattern(_ENDS_SENTENCE).match(text, end) is not None


def _is_password(value: str, *, bare: bool, plural: bool) -> bool:
    """Whether `value` looks like a password: digits among letters, signs, capitals inside, or a number."""
    if bare:
        return _mixed(value) and len(value) >= 6 and value.isascii()
    core = value.strip(_EMPHASIS)
    if core.isalpha() and core[1:].islower():
        return False
    if core.isdigit():
        return not plural
    odd = any(not char.isalnum() and char not in "'’-_/." for char in core) and not core.endswith("(")
    camel = len(core) >= 8 and not core.islower() and not core.isupper() and not core[1:].islower()
    return odd or camel or _mixed(core)


def _may_be_plain_password(value: str) -> bool:
    """Whether a word without digits and signs can be a password rather than tell something about one."""
    core = value.strip(_EMPHASIS).lower()
    return len(core) >= 4 and core not in _NO_PASSWORD and not core.endswith(_TELLING)


def _mixed(value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
