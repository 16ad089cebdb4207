"""Secrets that somebody says: a model that repeats them in every form, and forms that nobody thinks of.

Invariants: each value is used once; it is looked for in every byte that the bot has written, and in all it has sent.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from tests.attack.frame import ADA, EVE, GROUP, Attack, Bot, scenario
from tests.attack.model import Says, words
from tests.kit.served import SELDOM
from tests.platforms.chat_model import JSON, is_extraction

_FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda value: value,
    "in a sentence": lambda value: f"Your password is {value}, I will keep it safe.",
    "quoted": lambda value: f'You said "{value}".',
    "in Chinese quotes": lambda value: f"你的密码是「{value}」。",
    "in code": lambda value: f"`{value}`",
    "in a block": lambda value: f"```sh\nlogin --pass {value}\n```",
    "in upper case": str.upper,
    "in lower case": str.lower,
    "with blanks": " ".join,
    "with hyphens": "-".join,
    "with dots": ".".join,
    "one a line": "\n".join,
    "with zero width": "\u200b".join,
    "half in bold": lambda value: f"**{value[:4]}**{value[4:]}",
    "every letter in code": lambda value: "".join(f"`{c}` " for c in value),
    "in full width": lambda value: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in value),
    "in an address": lambda value: f"https://example.org/login?u=ada&p={value}",
    "in a label": lambda value: f"[{value}](https://example.org)",
    "in a table": lambda value: f"| what | value |\n|---|---|\n| it | {value} |",
    "in JSON": lambda value: f'{{"it": "{value}"}}',
    "in parentheses": lambda value: f"({value})",
    "in a list": lambda value: f"- one\n- {value}\n- two",
    "twice joined": lambda value: f"{value}{value}",
    "inside a word": lambda value: f"xx{value}xx",
    "late in a long answer": lambda value: "All is well. " * 400 + value,
    "across two messages": lambda value: "a" * 4_090 + value,
}  # fmt: skip
_TOOLS: dict[str, Callable[[str], JSON]] = {
    "remember_fact": lambda text: {"text": f"The door opens with {text}", "key": "note"},
    "search_memory": lambda text: {"query": text},
    "get_entity_info": lambda text: {"name": text},
    "correct_fact": lambda text: {"id": "m_aaaaaa", "value": text},
    "no_such_tool": lambda text: {"x": text},
}
_SAID = (
    "my password is {}", "the password for the router is {}", "passwd: {}", "我的密码是{}", "remember: password={}",
)  # fmt: skip


@scenario("echo")
async def echo(attack: Attack) -> None:
    async with attack.bot(
        pace=replace(SELDOM, placeholder_seconds=0.1), log="{level: debug, format: json, file: remora.log}"
    ) as bot:
        bot.model.pause, bot.model.piece = 0.02, 5
        said: dict[str, tuple[str, ...]] = {}
        for n, (how, form) in enumerate(_FORMS.items()):
            if attack.short and n % 4:
                continue
            value = _value(n)
            written = form(value)
            bot.model.script = _writes(written)
            # A long answer in small pieces would take minutes.
            bot.model.piece = 5 if len(written) < 500 else 900
            user, chat = ((ADA, None), (EVE, GROUP))[n % 2 if not attack.short else n // 4 % 2]
            await _say(bot, n, value, user, chat)
            said[f"answered {how}"] = (value, written[-200:])
        for n, (tool, arguments) in enumerate(_TOOLS.items(), start=len(_FORMS)):
            for how in ("as it is", "in upper case", "with hyphens")[: 1 if attack.short else 3]:
                value = _value(100 * n + len(how))
                bot.model.script = _calls((tool, arguments(_FORMS[how](value))))
                await _say(bot, n, value, ADA, None)
                said[f"{tool} {how}"] = (value, _FORMS[how](value))
        await bot.rest()
        bot.model.script = lambda body: None
        await bot.ask("/memory export transcript", user=ADA)
        for number, (_, data) in enumerate(await bot.telegram.files(ADA)):
            (bot.folder / f"exported{number}").write_bytes(data)
        sent = (await bot.sent()) + "\n".join([*await bot.texts(ADA), *await bot.texts(GROUP)])
        for how, values in said.items():
            held = bot.holding(*values)
            shown = next((one for one in values if one.lower() in sent.lower()), "")
            attack.count(held or shown, f"{how}: {held or f'the chat shows {shown!r}'}"[:300])
        await bot.stop()
        value = _value(9_000)
        bot.model.script = _writes(f"So it is {value}.")
        _, printed = await bot.cli("chat", "--once", f"my password is {value}")
        attack.count(value in printed, f"the terminal shows {printed[:100]!r}")


def _value(n: int) -> str:
    """A value that looks like nothing but a password."""
    return f"Kw{n:04}r-Vz7!pQ{n % 7}x"


async def _say(bot: Bot, n: int, value: str, user: int, chat: int | None) -> None:
    before = len(bot.model.requests)
    await bot.ask(_SAID[n % len(_SAID)].format(value), user=user, chat=chat)
    with suppress(TimeoutError):
        await bot.telegram.wait(delivered=True, idle=0.2, timeout=20)
    assert len(bot.model.requests) > before, "the model was not asked"


def _writes(text: str) -> Callable[[JSON], Says | None]:
    return lambda body: None if is_extraction(body) else Says(text=text)


def _calls(call: tuple[str, JSON]) -> Callable[[JSON], Says | None]:
    def step(body: JSON) -> Says | None:
        if is_extraction(body):
            return None
        return Says(text="Done.") if words(body)[-1][0] == "tool" else Says(calls=[call])

    return step


#: Messages that hold a secret, each with the part that must not be kept.
_SECRETS = (
    ("here is my key sk-proj-{a24}{A24}", "sk-proj-{a24}{A24}"),
    ("ANTHROPIC_API_KEY=sk-ant-api03-{a40}-{A20}AA", "sk-ant-api03-{a40}-{A20}AA"),
    ("ghp_{A36} is my github token", "ghp_{A36}"),
    ("github_pat_{A22}_{A59}", "github_pat_{A22}_{A59}"),
    ("glpat-{A20} for gitlab", "glpat-{A20}"), ("aws AKIA{U16} and wJalr{A35}", "AKIA{U16}"),
    ("aws_secret_access_key = {A40}", "{A40}"),
    ("slack xoxb-{d12}-{d12}-{A24}", "xoxb-{d12}-{d12}-{A24}"),
    ("https://hooks.slack.com/services/T{U8}/B{U8}/{A24}", "{A24}"),
    ("stripe sk_live_{A24}", "sk_live_{A24}"), ("bot token {d10}:{A35}", "{d10}:{A35}"),
    ("discord MT{A22}.{A6}.{A27}", "MT{A22}.{A6}.{A27}"),
    ("google AIza{A35}", "AIza{A35}"), ("npm_{A36}", "npm_{A36}"),
    ("pypi-AgEIcHlwaS5vcmc{A40}", "pypi-AgEIcHlwaS5vcmc{A40}"),
    ("hf_{A34} is for the models", "hf_{A34}"), ("SG.{A22}.{A43}", "SG.{A22}.{A43}"),
    ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIi{A20}.{A43}", "eyJzdWIi{A20}.{A43}"),
    ("-----BEGIN RSA PRIVATE KEY-----\n{A60}\n{A60}\n-----END RSA PRIVATE KEY-----", "{A60}"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\n{A60}\n{A40}", "{A60}"),
    ("postgres://ada:{a14}@db.example.org/app", "{a14}"),
    ("redis://:{a14}@10.0.0.1:6379", "{a14}"),
    ("curl -u ada:{a14} https://example.org", "{a14}"),
    ("Authorization: Bearer {A32}", "{A32}"), ("Authorization: Basic {A28}==", "{A28}"),
    ("my wifi password is {a10}", "{a10}"), ("WLAN-Passwort: {a12}", "{a12}"), ("密码：{a12}", "{a12}"),
    ("我的密码是 {a12}", "{a12}"), ("contraseña: {a12}", "{a12}"), ("mot de passe : {a12}", "{a12}"),
    ("пароль: {a12}", "{a12}"), ("パスワードは {a12} です", "{a12}"), ("password ‘{a12}’", "{a12}"),
    ("password：{a12}", "{a12}"), ("my PIN is {d6}", "{d6}"), ("2FA secret JBSW{U24}", "JBSW{U24}"),
    ("recovery codes: {a5}-{a6} {a4}-{a7}", "{a5}-{a6}"),
    ('{{"api_key": "{A32}"}}', "{A32}"), ("export TOKEN='{A32}'", "{A32}"), ("docker login -u ada -p {a14}", "{a14}"),
    ("mysql -pQ{a12} app", "Q{a12}"), ("sshpass -p '{a14}' ssh host", "{a14}"), ("the password?\n{a12}", "{a12}"),
    ("p\u200bassword: {a12}", "{a12}"), ("ｐａｓｓｗｏｒｄ: {a12}", "{a12}"), ("**password**: `{a12}`", "{a12}"),
    ("username ada / password {a12}", "{a12}"),
)  # fmt: skip


@scenario("secrets")
async def secrets(attack: Attack) -> None:
    async with attack.bot() as bot:
        bot.model.script = lambda body: None if is_extraction(body) else Says(text="Ok.")
        made = [(_filled(said, n), _filled(secret, n)) for n, (said, secret) in enumerate(_SECRETS)]
        for n, (said, secret) in enumerate(made):
            assert secret in said
            user, chat = ((ADA, None), (EVE, GROUP))[n % 2]
            await bot.ask(said, user=user, chat=chat)
            # The whole message of a command is a question, too, and so is what a reply quotes.
            if not attack.short and n % 5 == 0:
                await bot.ask(f"/remember {_filled(_SECRETS[n][0], n)}", user=ADA)
        await bot.rest()
        for said, secret in made:
            held = bot.holding(secret)
            attack.count(held, f"of {said!r}: {held}")


def _filled(text: str, n: int) -> str:
    """`text` with values of its own: {a12} small letters and digits, {A12} mixed, {U12} capitals and digits, {d12} digits."""

    def made(match: re.Match[str]) -> str:
        small, digits = "abcdefghijkmnpqrstuvwxyz", "0123456789"
        of = {"a": small + digits, "A": small + small.upper() + digits, "U": small.upper() + digits, "d": digits}[
            match[1]
        ]
        # The same for the same place of the same sentence, so that a value is found in what was said.
        chance = random.Random(f"{n} {match[0]}")
        return "".join(chance.choices(of, k=int(match[2])))

    return re.sub(r"\{([aAUd])(\d+)\}", made, text).replace("{{", "{").replace("}}", "}")
