"""Masks secrets in text.

Invariants: pure, in time linear in the text; idempotent; nothing but the secrets themselves changes, and a mark
that is set is never read as a secret again. This is a filter for what people paste by mistake, not a boundary: a
password in the middle of prose, without a word that announces it, passes.

How it stays idempotent: every detector looks only at ASCII word characters around a find, begins at the start of
such a word, and the mark swallows the rest of the word; a find that a mark of an earlier pass cuts short is
dropped. So setting one mark can't open or close the way for another detector beside it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple


class _Find(NamedTuple):
    """A secret: where it stands, what it is called, and the whole stretch that gave it away."""

    start: int
    end: int
    label: str
    since: int
    until: int


class _Token(NamedTuple):
    """Keys that a vendor marks with a prefix; `least` counts the characters after it."""

    prefix: str
    label: str
    least: int


#: Prefixes as the vendors' own documentation and secret-scanning partners publish them; those of GitHub
#: (classic), Stripe (live), Slack (classic), SendGrid, AWS, Square, Twilio, Mailchimp, Azure and Discord
#: come from detect-secrets below. The longest prefix of a family stands first.
_TOKENS = (
    _Token("sk-ant-", "anthropic key", 20),
    _Token("sk-or-", "openrouter key", 20),
    _Token("sk-", "openai key", 20),
    _Token("AIza", "google key", 35),
    _Token("GOCSPX-", "google client secret", 20),
    _Token("ya29.", "google token", 20),
    _Token("github_pat_", "github token", 22),
    _Token("glpat-", "gitlab token", 20),
    _Token("gldt-", "gitlab token", 20),
    _Token("glrt-", "gitlab token", 20),
    _Token("glptt-", "gitlab token", 20),
    _Token("gloas-", "gitlab token", 20),
    _Token("glcbt-", "gitlab token", 20),
    _Token("glagent-", "gitlab token", 20),
    _Token("xapp-", "slack token", 20),
    _Token("xoxc-", "slack token", 20),
    _Token("xoxd-", "slack token", 20),
    _Token("xoxe-", "slack token", 20),
    _Token("sk_test_", "stripe key", 24),
    _Token("rk_test_", "stripe key", 24),
    _Token("whsec_", "webhook secret", 24),
    _Token("hf_", "hugging face token", 30),
    _Token("npm_", "npm token", 36),
    _Token("pypi-AgE", "pypi token", 50),
    _Token("AKC", "artifactory key", 50),
    _Token("gsk_", "groq key", 40),
    _Token("xai-", "xai key", 40),
    _Token("pplx-", "perplexity key", 40),
    _Token("tvly-", "tavily key", 20),
    _Token("nvapi-", "nvidia key", 40),
    _Token("jina_", "jina key", 40),
    _Token("r8_", "replicate token", 30),
    _Token("dop_v1_", "digitalocean token", 40),
    _Token("doo_v1_", "digitalocean token", 40),
    _Token("ntn_", "notion token", 40),
    _Token("lin_api_", "linear key", 30),
    _Token("shpat_", "shopify token", 32),
    _Token("shpss_", "shopify secret", 32),
    _Token("glsa_", "grafana token", 32),
    _Token("sntrys_", "sentry token", 40),
    _Token("figd_", "figma token", 36),
    _Token("sbp_", "supabase token", 40),
    _Token("dckr_pat_", "docker token", 20),
    _Token("hvs.", "vault token", 24),
    _Token("dp.pt.", "doppler token", 40),
    _Token("dapi", "databricks token", 32),
    _Token("tskey-", "tailscale key", 20),
    _Token("ATATT3", "atlassian token", 50),
    _Token("LTAI", "alibaba key", 12),
    _Token("AKID", "tencent key", 28),
    _Token("AGE-SECRET-KEY-1", "age key", 50),
    # A Discord interaction token is base64 of "interaction:..."; it lets its holder answer for the bot.
    _Token("aW50ZXJhY3Rpb246", "discord interaction token", 40),
)
#: Prefixes that also begin ordinary hyphenated words; their tail must hold a digit or a capital.
_WORDLIKE = frozenset({"sk-", "xai-", "glrt-", "gldt-"})


def redact(text: str) -> str:
    """Return `text` with every secret replaced by a mark such as `[secret: openai key]`.

    Masked are vendor keys and tokens, private key blocks, JSON web tokens, `Authorization` and bearer
    values, passwords in URLs, values announced by a word ("my password is ...", `api_key=...`, 密码是...),
    seed phrases and payment card numbers (13 to 19 digits in a card's grouping, a card's first digits,
    right Luhn sum). Not masked are mail addresses, phone numbers and one-time codes: they are what people
    want remembered, or soon worthless. Never raises; the time is linear in the length of the text.
    """
    finds = sorted(_finds(text), key=lambda find: find.start)
    if not finds:
        return text
    marks = [match.span() for match in _pattern(r"\[secret: [a-z ]{3,30}\]").finditer(text)]
    parts: list[str] = []
    last = 0
    for found in _merged(finds, text, marks):
        parts += (text[last : found.start], f"[secret: {found.label}]")
        last = found.end
    parts.append(text[last:])
    return "".join(parts)


def _merged(finds: Iterable[_Find], text: str, marks: list[tuple[int, int]]) -> Iterator[_Find]:
    """Finds as disjoint stretches in order, whole words, without those that touch an earlier pass's mark."""
    ends = [end for _, end in marks]
    current: _Find | None = None
    for found in finds:
        mark = bisect_left(ends, found.since)
        if mark < len(marks) and marks[mark][0] <= found.until:
            continue
        end = _end_of(r"[A-Za-z0-9_]*+", text, found.end)
        if current is None or found.start >= current.end:
            if current is not None:
                yield current
            current = found._replace(end=end)
        else:
            current = current._replace(end=max(end, current.end))
    if current is not None:
        yield current


def _end_of(run: str, text: str, start: int) -> int:
    """Where the run of characters that begins at `start`, and may be empty, ends."""
    match = _pattern(run).match(text, start)
    return match.end() if match else start


def _finds(text: str) -> Iterator[_Find]:
    """All finds in no order; a detector is entered only when its literal is in the text."""
    for joint, tokens in _tokens_by_joint().items():
        if joint in text:
            for token in tokens:
                if token.prefix in text:
                    yield from _prefixed(text, token)
    if ":" in text or "%3A" in text:
        yield from _telegram(text)
    if "eyJ" in text:
        yield from _json_web_tokens(text)
    if "-----BEGIN " in text:
        yield from _private_keys(text)
    if "://" in text:
        yield from _in_urls(text)
    yield from _cards(text)
    yield from _known_to_library(text)
    yield from _announced(text)


@cache
def _tokens_by_joint() -> dict[str, list[_Token]]:
    """Tokens by the rarest character of their prefix: prose without an underscore skips half of them."""
    joints: dict[str, list[_Token]] = {}
    for token in _TOKENS:
        joint = next((char for char in "_-." if char in token.prefix), token.prefix[0])
        joints.setdefault(joint, []).append(token)
    return joints


@cache
def _pattern(source: str) -> re.Pattern[str]:
    """Patterns are compiled when first needed, so that importing this module costs nothing. ASCII only,
    because what a vendor issues is ASCII."""
    return re.compile(source, re.ASCII)


@cache
def _begun(literal: str) -> str:
    """`literal` where a word begins, also behind an escape (`\\\\n`, `%3D`) as in JSON and URLs.

    The test stands behind the literal, because `re` finds a leading literal ten times as fast as a
    look-behind.
    """
    return rf"{literal}(?:(?<![A-Za-z0-9_]{literal})|(?<=\\[nrt]{literal})|(?<=%[0-9A-Fa-f]{{2}}{literal}))"


def _prefixed(text: str, token: _Token) -> Iterator[_Find]:
    # The possessive tail is read once, and a new match can't begin inside of it: linear.
    source = rf"{_begun(re.escape(token.prefix))}[A-Za-z0-9_-]{{{token.least},}}+"
    for match in _pattern(source).finditer(text):
        tail = match.group()[len(token.prefix) :]
        if token.prefix not in _WORDLIKE or any(char.isdigit() or char.isupper() for char in tail):
            yield _Find(match.start(), match.end(), token.label, match.start(), match.end())


def _telegram(text: str) -> Iterator[_Find]:
    """`<bot id>:<35 characters>`, also behind `/bot` in a URL and with an encoded colon
    (core.telegram.org/bots/api)."""
    for colon in (":", "%3A"):
        for match in _pattern(rf"{colon}(?<=[0-9]{{6}}{colon})[A-Za-z0-9_-]{{35,}}+").finditer(text):
            start = match.start()
            while start > 0 and text[start - 1] in "0123456789":
                start -= 1
            yield _Find(start, match.end(), "telegram token", start, match.end())


def _json_web_tokens(text: str) -> Iterator[_Find]:
    """Two to five base64url parts of which the first is a JSON object (RFC 7519, RFC 7516)."""
    source = rf"{_begun('eyJ')}[A-Za-z0-9_-]{{8,}}+\.[A-Za-z0-9_-]{{8,}}+(?:\.[A-Za-z0-9_-]*+){{0,3}}+"
    for match in _pattern(source).finditer(text):
        yield _Find(match.start(), match.end(), "json web token", match.start(), match.end())


def _private_keys(text: str) -> Iterator[_Find]:
    """PEM blocks (RFC 7468), with escaped line ends too. One that was cut off is masked as far as it is
    base64."""
    name = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    whole = rf"(?:[^-]|-(?!----))*+-----END {name}"
    cut_off = r"(?:(?:\s|\\[nr]){0,4}[A-Za-z0-9+/=]{20,}+)*+"
    for match in _pattern(rf"-----BEGIN {name}(?:{whole}|{cut_off})").finditer(text):
        # Behind its dashes a block is whole whatever follows; cut off, what follows may belong to it.
        until = match.end() - match.group().endswith("-")
        yield _Find(match.start(), match.end(), "private key", match.start(), until)


def _in_urls(text: str) -> Iterator[_Find]:
    # Neither part may hold a slash, and every start has one: starts never share what they read.
    for match in _pattern(r"""://[^\s/:@"'<>]{0,256}:([^\s/"'<>]{1,4096})@""").finditer(text):
        if match.group(1).strip("*"):
            yield _Find(match.start(1), match.end(1), "url password", match.start(), match.end())
    for match in _pattern(r"/(?:webhooks|interactions)/[0-9]{15,21}/([A-Za-z0-9_-]{30,}+)").finditer(text):
        yield _Find(match.start(1), match.end(1), "webhook token", match.start(), match.end())
    for match in _pattern(r"hooks\.slack\.com/services/([A-Za-z0-9_/-]{20,}+)").finditer(text):
        yield _Find(match.start(1), match.end(1), "webhook token", match.start(), match.end())


#: First digit of a card to how many it has (ISO/IEC 7812 ranges of the networks in use). That 17 and 18 are
#: missing matters: so long are Discord's ids.
_CARD_LENGTHS = {"2": (16,), "3": (14, 15, 16), "4": (16, 19), "5": (16,), "6": (16, 19)}


def _cards(text: str) -> Iterator[_Find]:
    """Payment cards: in one piece or grouped as printed, a network's first digits, a right check digit."""
    source = (
        r"[2-6](?<![A-Za-z0-9_][2-6])(?=((?<=4)[0-9]|(?<=5)[1-5]|(?<=2)[2-7]|(?<=3)[04-9]|(?<=6)[0245])"
        r"([0-9]{12,17}"
        r"|[0-9]{2}(?:([ -])[0-9]{4}\3[0-9]{4}\3[0-9]{4}(?:\3?[0-9]{3})?|([ -])[0-9]{6}\4[0-9]{4,5}))"
        r"(?![A-Za-z0-9_]))"
    )
    for match in _pattern(source).finditer(text):
        start, end = match.start(), match.end(2)
        digits = text[start:end].replace(" ", "").replace("-", "")
        if len(digits) in _CARD_LENGTHS[digits[0]] and _luhn(digits):
            yield _Find(start, end, "card number", start, end)


def _luhn(digits: str) -> bool:
    """ISO/IEC 7812-1, annex B: from the right, every second digit is doubled and its own digits added."""
    codes = digits.encode()
    total = sum(codes[::-1][::2]) + sum(codes[-2::-2].translate(_DOUBLED)) - ord("0") * len(codes)
    return total % 10 == 0


#: Digit characters to the digit sum of their double, as characters; bytes keep ten times the pace of a list
#: of ints.
_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")


# --- secrets that a word announces -------------------------------------------------------------------------


class _Word(NamedTuple):
    """A word that announces a secret: `stem` is searched as a plain literal in lower case, `rest` follows it.

    `kind` decides what may count as the value after it (see `_is_secret`).
    """

    stem: str
    rest: str
    kind: str
    label: str


_WORDS = (
    _Word("pass", r"(?:word|wd|code|wort)(?P<plural>s)?", "password", "password"),
    _Word("pwd", r"(?P<plural>s)?", "password", "password"),
    _Word("contraseña", r"(?P<plural>s)?", "password", "password"),
    _Word("mot de passe", r"(?P<plural>)", "password", "password"),
    _Word("парол", r"[ья]?(?P<plural>и)?", "password", "password"),
    _Word("パスワード", r"(?P<plural>)", "password", "password"),
    _Word("비밀번호", r"(?P<plural>)", "password", "password"),
    _Word("密码", r"(?P<plural>)", "password", "password"),
    _Word("密碼", r"(?P<plural>)", "password", "password"),
    _Word("口令", r"(?P<plural>)", "password", "password"),
    _Word("pin", r"(?: ?code| number|码)?(?P<plural>s)?", "pin", "pin"),
    _Word("passphrase", r"(?P<plural>s)?", "line", "passphrase"),
    _Word("seed phrase", r"(?P<plural>s)?", "phrase", "seed phrase"),
    _Word("recovery phrase", r"(?P<plural>s)?", "phrase", "seed phrase"),
    _Word("mnemonic", r"(?P<plural>s)?", "phrase", "seed phrase"),
    _Word("助记词", r"(?P<plural>)", "phrase", "seed phrase"),
    _Word("api", r"[ _-]?(?:key|token|secret)(?P<plural>s)?", "key", "api key"),
    _Word("access", r"[ _-]?key(?P<plural>s)?", "key", "access key"),
    _Word("account", r"[ _-]?key(?P<plural>s)?", "key", "access key"),
    _Word("private", r"[ _-]?key(?P<plural>s)?", "key", "private key"),
    _Word("secret", r"(?:[ _-]?(?:access[ _-]?)?key)?(?P<plural>s)?", "key", "secret"),
    _Word("token", r"(?P<plural>s)?", "key", "token"),
    _Word("密钥", r"(?P<plural>)", "key", "api key"),
    _Word("密鑰", r"(?P<plural>)", "key", "api key"),
    _Word("令牌", r"(?P<plural>)", "key", "token"),
    _Word("authorization", r"(?P<plural>)", "header", "authorization"),
    _Word("bearer", r"(?P<plural>)", "bearer", "bearer token"),
)

#: Kana, ideographs and Hangul stand behind all alphabets that write spaces.
_FIRST_CJK = "\u3040"
#: What follows a word and makes the next thing its value: closing quotes, "for the wifi", then a sign or a
#: verb; or nothing but a space (in Chinese not even that).
_LEADS_TO = (
    r"""(?:[\\"'`*\])]{0,4}(?: (?:for|to|of|on|at)(?: [^\s:=：]{1,24}){1,4}?)?"""
    r"(?P<sign>[ \t]{0,3}(?::=|=>|->|[:=：＝])[ \t]{0,4}\n?[ \t]{0,4}"
    r"| {1,2}(?:is|was|are|ist|es|est|=)(?: now)?:? {1,2}"
    r"| {0,2}(?:就是|是|为|為|改成|改为|设为|設為|は|는|은)[ :：]{0,3})"
    r"|(?P<bare>[ ：]{1,2})(?=[!-~]{0,64}[0-9]))"
)
_LEADS_TO_IN_CJK = _LEADS_TO.replace("[ ：]{1,2})", "[ ：]{0,2})")
#: Keys without a digit are so rare that looking for one first is worth it: most talk of tokens ends here.
_DIGIT_AHEAD = r"(?=[^\s]{0,64}[0-9])"
_SCHEME = r"""(?:\\?["'])?(?P<scheme>(?:bearer|basic|token|bot|digest|apikey) {1,3})?"""

_QUOTED = (
    r"""\\?(?:"([^"\n]{4,400}?)\\?"|'([^'\n]{4,400}?)\\?'|`([^`\n]{4,400})`"""
    r"|“([^”\n]{4,400})”|「([^」\n]{4,400})」)"
)
#: Unquoted values: visible ASCII, Latin, Greek and Cyrillic letters. Chinese text and punctuation end them.
_BARE = r"""(?![\\"'`])[!-~\u00c0-\u04ff]{4,}+"""
#: What machines issue keeps to base64 and its URL-safe relatives, so that `token:...@host` ends in time.
_BARE_KEY = r"[A-Za-z0-9+/=_.~:%-]{4,}+"
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


def _announced(text: str) -> Iterator[_Find]:
    # Lower case serves the search only and must keep every position; the dotted capital I alone would grow.
    lower = text.replace("İ", "i").lower()
    for word in _WORDS:
        if word.stem not in lower:
            continue
        source = word.stem + word.rest + (_LEADS_TO_IN_CJK if word.stem[0] >= _FIRST_CJK else _LEADS_TO)
        if word.kind == "header":
            source += _SCHEME
        elif word.kind in ("key", "pin", "bearer"):
            source += _DIGIT_AHEAD
        for match in _pattern(source).finditer(lower):
            value = _value(text, match, word.kind)
            if value is not None:
                start, end, until = value
                yield _Find(start, end, word.label, match.start(), until)


def _value(text: str, match: re.Match[str], kind: str) -> tuple[int, int, int] | None:
    """Start and end of the value behind an announcing word, and how far was read; None: no secret."""
    sign = (match["sign"] or "").strip()
    explicit = sign != "" and not sign.strip(":：=＝><-")
    if kind in ("phrase", "line"):
        source = _SEED_PHRASE if kind == "phrase" else r"([^\n]{4,200})"
        phrase = _pattern(source).match(text, match.end()) if explicit or (sign and kind == "phrase") else None
        return (*phrase.span(1), phrase.end()) if phrase else None
    span = _stretch(text, match.end(), _BARE if kind == "password" else _BARE_KEY)
    if span is None:
        return None
    value = text[span[0] : span[1]]
    if kind == "password":
        plural = bool(match["plural"])
        # A plain word is taken when the sentence ends with it. Chinese and its neighbours go on without a
        # space; what stands there in Latin letters is the value.
        final = match.group()[0] >= _FIRST_CJK or sign in ("=", ":=", "：", "＝") or _ends_sentence(text, span[1])
        plain = sign != "" and final and not plural and _may_be_plain_password(value)
        secret = plain or _is_password(value, bare=not sign, plural=plural)
    elif kind == "header":
        secret = _mixed(value) or match["scheme"] is not None
    elif kind == "pin":
        part_of_word = match.start() > 0 and text[match.start() - 1].isalpha()
        secret = sign != "" and not part_of_word and value.isdigit() and len(value) <= 8
    elif kind == "bearer":
        secret = _mixed(value) and len(value) >= 20
    else:
        code = bool(set(value) & set("()[]{}$<>"))
        secret = sign != "" and not code and _mixed(value) and len(value) >= (8 if explicit else 12)
    return span if secret else None


def _stretch(text: str, start: int, bare: str) -> tuple[int, int, int] | None:
    """What stands at `start` as one value, in quotes or not: its start, its end, and how far was read."""
    quoted = _pattern(_QUOTED).match(text, start)
    if quoted is not None:
        start, end = quoted.span(quoted.lastindex or 0)
        until = end
    else:
        unquoted = _pattern(bare).match(text, start)
        if unquoted is None:
            return None
        until = unquoted.end()
        end = start + len(unquoted.group().rstrip(".,:;?)]}|\"'`"))
    value = text[start:end]
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


# --- secrets that the kept library knows -------------------------------------------------------------------

#: Label, literals and reach of each plugin in use. Its patterns see `reach` characters on both sides of a
#: literal, more than the longest find, because they are not all linear over a whole text; with 0 they begin
#: with their literal.
_PLUGINS = (
    ("aws key", ("AKIA", "ASIA", "ABIA", "ACCA"), 24),
    ("azure key", ("==",), 100),
    ("github token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), 44),
    ("mailchimp key", ("-us",), 40),
    ("sendgrid key", ("SG.",), 0),
    ("slack token", ("xox",), 160),
    ("square secret", ("sq0csp-",), 0),
    ("stripe key", ("k_live_",), 40),
    ("twilio key", ("AC", "SK"), 0),
)


@cache
def _library() -> dict[str, tuple[re.Pattern[str], ...]]:
    """Patterns of detect-secrets by our label.

    Imported when a text first holds one of the literals: the import costs 80 ms and 7 MB. Only patterns are
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
        # The second AWS pattern reads secrets behind a variable's name; that is `_announced` here.
        "aws key": tuple(AWSKeyDetector.denylist[:1]),
        "azure key": tuple(AzureStorageKeyDetector.denylist),
        "discord token": tuple(DiscordBotTokenDetector.denylist),
        "github token": tuple(GitHubTokenDetector.denylist),
        "mailchimp key": tuple(MailchimpDetector.denylist),
        "sendgrid key": tuple(SendGridDetector.denylist),
        # The second Slack pattern masks a webhook's whole URL; `_in_urls` masks its secret part.
        "slack token": tuple(SlackDetector.denylist[:1]),
        "square secret": tuple(SquareOAuthDetector.denylist),
        "stripe key": tuple(StripeDetector.denylist),
        "twilio key": tuple(TwilioKeyDetector.denylist),
    }


def _known_to_library(text: str) -> Iterator[_Find]:
    for label, literals, reach in _PLUGINS:
        present = [literal for literal in literals if literal in text]
        if present:
            anchor = _pattern("|".join(map(re.escape, present)))
            windows = list(_windows(anchor.finditer(text), reach, len(text))) if reach else [(0, len(text))]
            yield from _in_windows(text, label, windows)
    # A Discord token has no prefix, but the distance of its two dots is telling.
    if "." in text:
        dots = _pattern(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}").finditer(text)
        yield from _in_windows(text, "discord token", list(_windows(dots, 40, len(text))))


def _in_windows(text: str, label: str, windows: list[tuple[int, int]]) -> Iterator[_Find]:
    for pattern in _library()[label] if windows else ():
        position = 0
        for low, high in windows:
            position = max(low, position)
            while match := pattern.search(text, position, high):
                quoted = match.group()[0] in "\"'"
                start = match.start() + quoted
                if _begins_word(text, start):
                    # Vendors lengthen their tokens; the length in the pattern is the least.
                    end = match.end() - (match.group()[-1] in "\"'")
                    position = _end_of(r"[A-Za-z0-9_-]*+", text, end)
                    yield _Find(start, position, label, start, position)
                else:
                    position = match.start() + 1


def _windows(matches: Iterable[re.Match[str]], reach: int, length: int) -> Iterator[tuple[int, int]]:
    """Stretches of `reach` characters around the matches; overlapping ones are joined, so none is read
    twice."""
    low, high = 0, -1
    for match in matches:
        if match.start() - reach > high:
            if high >= 0:
                yield low, high
            low = max(0, match.start() - reach)
        high = min(length, match.end() + reach)
    if high >= 0:
        yield low, high


def _begins_word(text: str, start: int) -> bool:
    """Whether no ASCII word runs up to `start`, escapes aside (the same test as in `_begun`)."""
    before = text[max(0, start - 3) : start]
    return _pattern(r"(?:\A|[^A-Za-z0-9_]|\\[nrt]|%[0-9A-Fa-f]{2})\Z").search(before) is not None
