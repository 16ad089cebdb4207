"""The readers of strangers' words, as a table, and the units of texts that are made to cost them the most.

A new reader is a line of `READERS`. A unit stands for a token that some pattern knows, alone or half finished; texts
repeat one, or several in turn.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from itertools import chain
from typing import Any, Final

from agents import budget, calls, output, prompt, tools
from agents.offline import question
from agents.offline.speech import speech
from agents.providers import adapter, quirks
from agents.providers.errors import MOST_ERROR_BYTES, Refusal
from channels import markup
from gateway.api import completions
from gateway.commands import call, keys, plain, table
from gateway.internet.addresses import is_named
from gateway.pipeline import policy
from gateway.reading import attachments, plain_text
from gateway.reception import intake
from gateway.wording import texts as answers
from languages import LANGUAGES
from memory import typed_filters
from memory.errors import MemoryFault
from memory.forgetting import plan
from memory.keys import normalise_key
from memory.learn import answer, entities, extract, grounding
from memory.learn.offline import appointments, changes, intents, patterns
from memory.recall import query
from memory.reminders import orders
from memory.text import guard, language, likeness, links, occasion_words, sentences, simplified, things, words, zones
from memory.text.secrets import folding, likely, redact, repeated
from memory.text.times import calendar, clock, phrases, rules, spans, tables

#: The most characters of a message that are read, as the settings have it.
MESSAGE: Final = 32_000
_DAY: Final = date(2026, 1, 15)
_NOW: Final = datetime(2026, 1, 15, 12, tzinfo=UTC)
_REPEATED: Final = repeated.masking([f"pw: {nth:05}aB!x\n" * 2 for nth in range(300)] + ["pw: aaaaaaaaaaaaB1!"])


_OF_TIMES: Final[tuple[tuple[str, str, Callable[..., Any], dict[str, Any]], ...]] = (
    ("spans", "days_named", spans.days_named, {"now": _NOW}),
    ("phrases", "is_request", phrases.is_request, {}),
    ("phrases", "read", phrases.read, {"now": _NOW}),
    ("phrases", "read_time", phrases.read_time, {"now": _NOW}),
    ("phrases", "read_bare", phrases.read_bare, {"now": _NOW}),
    ("phrases", "several", phrases.several, {"now": _NOW}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader by the name of its function. `most` bounds the characters it gets, `seconds` its processor time.

    Where more than the usual time is allowed, it runs in a thread, in which it does not stop the others: its single
    patterns are short.
    """

    name: str
    read: Callable[[str], Any]
    most: int = MESSAGE
    seconds: float = 0.25

    def took(self, text: str) -> float:
        """Returns the processor time in seconds that reading `text` takes this thread."""
        begun = time.thread_time()
        with contextlib.suppress(ValueError, MemoryFault, answer.Unreadable):
            self.read(text)
        return time.thread_time() - begun


def _fed(text: str, offered: Sequence[str] = ()) -> None:
    reading = output.Output(offered=offered)
    for at in range(0, len(text), 40):
        reading.feed(text[at : at + 40])
    reading.finish()


def _streamed(text: str) -> None:
    reading = adapter.Events()
    for line in ("data:" + text.replace("\n", "\ndata:")).encode("utf-8", "replace").split(b"\n"):
        for _ in reading.add(line):
            pass
    for _ in reading.finish():
        pass


def _decoded(text: str, *, encoding: str) -> str | None:
    return plain_text.decoded(text.encode(encoding, "replace"), chars=16_000)


def _refused(text: str) -> None:
    """Reads a refusal of a model's server as it comes, and what it teaches of a request with every field."""
    refusal = Refusal.parse(text.encode("utf-8", "replace")[:MOST_ERROR_BYTES], "sk-1")
    body = dict.fromkeys(("stream", "stream_options", "temperature", "top_p", "response_format", "system"), True)
    quirks.learned_from(400, text[:500].lower(), {**body, "max_tokens": 100_000}, set())
    assert refusal.overflow in (True, False) and refusal.is_unpaid(400) in (True, False)


def _orders(text: str, *, code: str) -> list[orders.Order]:
    return list(orders.read(text, language=code))


def _offline(code: str) -> Iterator[tuple[str, str, Callable[[str], Any]]]:
    """Yields what reads words for an agent without a model."""
    spoken = speech(code, simplified.simplified, sentences.parts)
    yield "agents.offline.question", "social", lambda text: question.social(text, spoken)
    yield "agents.offline.question", "is_question", lambda text: question.is_question(text, spoken)
    yield "agents.offline.question", "asked", lambda text: question.asked(text, spoken, words.tokens)


READERS: Final = (
    Reader(name="memory.text.guard.clean", read=guard.clean),
    Reader(name="memory.text.guard.injection_flags", read=guard.injection_flags),
    Reader(name="memory.text.language.language_of", read=language.language_of),
    Reader(
        name="memory.text.language.is_common_in_another", read=lambda text: language.is_common_in_another(text, "fr")
    ),
    Reader(name="memory.text.likeness.jaccard", read=lambda text: likeness.jaccard(text, text[5:])),
    Reader(
        name="memory.text.likeness.differs_in_substance",
        read=lambda text: likeness.differs_in_substance(text, text[5:]),
    ),
    Reader(name="memory.text.likeness.surface", read=likeness.surface),
    Reader(name="memory.text.likeness.said", read=likeness.said),
    Reader(name="memory.text.things.kinds_of", read=things.kinds_of),
    Reader(name="memory.text.things.thing", read=partial(things.thing, "pet")),
    Reader(name="memory.text.links.defang", read=links.defang, seconds=1.0),
    Reader(name="memory.text.occasion_words.is_occasion", read=occasion_words.is_occasion),
    Reader(
        name="memory.text.occasion_words.shows", read=lambda text: occasion_words.shows(text, "tender", "called_off")
    ),
    Reader(name="memory.text.sentences.parts", read=sentences.parts),
    Reader(
        name="memory.text.sentences.beginning",
        read=lambda text: sentences.beginning(text, lambda some: len(some) < len(text) - 100),
    ),
    Reader(
        name="gateway.reception.intake.as_kept",
        read=lambda text: intake.as_kept(text * 4, MESSAGE, clean=guard.clean, redact=str),
    ),
    Reader(name="memory.text.simplified.simplified", read=simplified.simplified),
    Reader(name="memory.text.words.tokens", read=words.tokens),
    Reader(name="memory.text.words.query_terms", read=words.query_terms),
    Reader(name="memory.text.words.fold", read=words.fold),
    Reader(name="memory.text.words.number_tokens", read=words.number_tokens),
    Reader(name="memory.text.words.han_date_tokens", read=words.han_date_tokens),
    Reader(name="memory.text.words.stem", read=words.stem),
    Reader(name="memory.text.zones.zone_named", read=zones.zone_named),
    Reader(name="memory.text.zones.zones_like", read=lambda text: zones.zones_like(text, limit=5)),
    Reader(name="memory.text.secrets.folding.folded", read=folding.folded),
    Reader(name="memory.text.secrets.folding.folded_with_places", read=folding.folded_with_places),
    Reader(name="memory.text.secrets.likely.likely", read=likely.likely, seconds=2.0),
    Reader(name="memory.text.secrets.redact.redact", read=redact.redact, seconds=2.0),
    Reader(name="memory.text.secrets.redact.by_rules", read=redact.by_rules, seconds=2.0),
    Reader(name="memory.text.secrets.redact.secrets_in", read=redact.secrets_in, seconds=2.0),
    Reader(name="memory.text.secrets.repeated.masking", read=_REPEATED, seconds=2.0),
    Reader(name="memory.text.times.tables.fold", read=tables.fold),
    Reader(name="memory.text.times.rules.parse_rule", read=rules.parse_rule),
    *(
        Reader(name=f"memory.text.times.{module}.{name}:{code}", read=partial(read, language=code, **more), most=600)
        for code in LANGUAGES
        for module, name, read, more in _OF_TIMES
        if name == "read_time" or code in ("en", "zh")  # it reads whatever the others read
    ),
    Reader(name="memory.text.times.phrases.languages", read=lambda text: list(phrases.languages(text, "en"))),
    Reader(name="memory.text.times.calendar.number_zh", read=calendar.number_zh),
    Reader(name="memory.text.times.clock.day_of", read=clock.day_of),
    Reader(name="memory.text.times.spans.anchor", read=lambda text: spans.anchor(text, _DAY)),
    Reader(name="memory.text.times.spans.dated", read=lambda text: spans.dated(text, _DAY, ahead=True)),
    Reader(name="memory.text.times.spans.spans", read=lambda text: spans.spans(text, _DAY, looks="back")),
    Reader(name="memory.typed_filters.read", read=lambda text: typed_filters.read(text, _DAY)),
    Reader(name="memory.typed_filters.span", read=typed_filters.span),
    Reader(name="memory.recall.query.should_search", read=query.should_search),
    Reader(
        name="memory.learn.offline.patterns.extract", read=lambda text: patterns.extract(text, today=_DAY), seconds=1.0
    ),
    Reader(name="memory.learn.offline.patterns.discloses", read=patterns.discloses, seconds=1.0),
    Reader(name="memory.learn.offline.changes.to_forget", read=changes.to_forget),
    Reader(name="memory.learn.offline.changes.changes", read=changes.changes),
    Reader(
        name="memory.learn.offline.changes.put_right", read=lambda text: changes.put_right(text[:500], text, near=True)
    ),
    *(
        Reader(
            name=f"memory.learn.offline.appointments.appointment:{code}",
            read=partial(appointments.appointment, code=code, today=_DAY),
        )
        for code in LANGUAGES
    ),
    Reader(name="memory.learn.offline.intents.named", read=intents.named),
    Reader(name="memory.learn.entities.extract", read=entities.extract, seconds=1.0),
    Reader(name="memory.learn.entities.of_fact", read=lambda text: entities.of_fact("name", text), most=2_000),
    Reader(name="memory.learn.grounding.is_quoted", read=lambda text: grounding.is_quoted(text[:500], text)),
    Reader(name="memory.learn.grounding.telling", read=grounding.telling),
    Reader(name="memory.learn.answer.read_answer", read=answer.read_answer),
    Reader(name="memory.learn.answer.read_object", read=answer.read_object),
    *(
        Reader(name=f"{module}.{name}:{code}", read=read, most=4_000)
        for code in ("en", "zh")
        for module, name, read in _offline(code)
    ),
    Reader(name="memory.learn.extract.subject_of", read=lambda text: extract.subject_of(text, "Ada"), seconds=1.0),
    Reader(name="memory.learn.extract.value_of", read=lambda text: extract.value_of(text, _DAY), seconds=1.0),
    *(Reader(name=f"memory.reminders.orders.read:{code}", read=partial(_orders, code=code)) for code in ("en", "zh")),
    Reader(name="memory.keys.normalise_key", read=normalise_key),
    Reader(name="memory.forgetting.plan.is_telling", read=plan.is_telling),
    Reader(name="gateway.reading.attachments.own_words", read=attachments.own_words),
    Reader(name="gateway.reading.attachments.plain_name", read=attachments.plain_name),
    *(
        Reader(name=f"gateway.reading.plain_text.decoded:{encoding}", read=partial(_decoded, encoding=encoding))
        for encoding in ("utf-16-le", "gb18030", "cp1252")
    ),
    Reader(name="gateway.pipeline.policy.code_in", read=policy.code_in),
    Reader(name="gateway.api.completions.own_words", read=completions.own_words),
    Reader(name="gateway.internet.addresses.is_named", read=lambda text: is_named("https://a.com/x", [text])),
    Reader(name="gateway.commands.plain.requested", read=lambda text: plain.requested(text, modelless=True)),
    Reader(name="gateway.commands.plain.requested:model", read=lambda text: plain.requested(text, modelless=False)),
    Reader(name="gateway.commands.plain.ends_questions", read=plain.ends_questions),
    Reader(name="gateway.commands.table.parse", read=table.parse),
    Reader(name="gateway.commands.table.unknown", read=lambda text: table.unknown(text, answers.Texts("en", "UTC"))),
    Reader(name="gateway.wording.texts.told_by", read=answers.told_by),
    Reader(name="gateway.commands.keys.asked_for", read=keys.asked_for),
    Reader(name="gateway.commands.call.excerpt", read=lambda text: call.excerpt(text, 200)),
    Reader(name="channels.markup.telegram", read=markup.telegram, seconds=2.0),
    Reader(name="channels.markup.discord", read=markup.discord, seconds=2.0),
    Reader(name="channels.markup.terminal", read=lambda text: markup.terminal(text, 80), seconds=2.0),
    Reader(name="channels.markup.plain", read=lambda text: markup.plain(text, 4_096)),
    Reader(name="channels.markup.unmentioning", read=markup.unmentioning),
    Reader(name="agents.prompt.unmarked", read=prompt.unmarked),
    Reader(name="agents.prompt.one_line", read=prompt.one_line),
    # Read in pieces as they come, so the loop never waits for the whole of it.
    Reader(name="agents.output.Output.feed", read=_fed, seconds=2.0),
    Reader(name="agents.output.Output.feed:offered", read=partial(_fed, offered=("a", "find")), seconds=2.0),
    Reader(name="agents.calls.arguments_in", read=calls.arguments_in),
    Reader(name="agents.calls.as_json", read=lambda text: calls.as_json("{" + text)),
    Reader(name="agents.calls.tool_named", read=lambda text: calls.tool_named(text, ("find", "forget_all"))),
    Reader(name="agents.providers.adapter.Events.add", read=_streamed),
    Reader(name="agents.providers.errors.Refusal.parse", read=_refused),
    Reader(name="agents.calls.calls_in", read=calls.calls_in),
    Reader(name="agents.calls.pythonic", read=calls.pythonic),
    Reader(name="agents.budget.count_tokens", read=budget.count_tokens),
    Reader(name="agents.tools.vendor_name", read=tools.vendor_name),
    Reader(name="agents.budget.shortened", read=lambda text: budget.shortened(text, 1_000, budget.count_tokens)),
)
UNITS: Final = (
    "a", "A", "1", "0", " ", "\n", "\t", ".", "-", "_", "–", "—", "*", "`", "~", "#", ">", "<", "[", "]", "(", ")",
    "{", "}", "|", '\\', "/", ":", ";", ",", "!", "?", "'", '"', "“", "”", "«", "»", "@", "&", "=", "+", "%", "$",
    "€", "^", "。", "、", "，", "「", "」", "：", "！", "？", "・", "中", "日", "あ", "カ", "한", "é", "e\u0301", "\u0301",
    "\u200b", "\u200d", "😀", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "İ", "ß", "ﬁ", "\ufe0f", "\u05d0",
    "\u0627", "ก", "अ", "二", "十", "百", "年", "月", "号", "点", "半", "两", "第", "a ", "a.", "a,", "a-", "a'", "a\n", "1 ",
    "1.", "1,", "1-", "1/", "1:", "1\n", "A ", "A.", "A. ", "Ab ", "- a\n", "* a\n", "1. a\n", "> a\n", "# a\n",
    "| a ", "|a|\n", "|-", "| - |\n", "`a` ", "**a** ", "*a", "**a", "_a_ ", "__a", "~~a~~ ", "||a|| ", "```\n",
    "```a\n", "~~~\n", "[a](b) ", "[a](", "![a](", "![", "[a]: b\n", "](", "[[", "]]", "((", "))", "()", "[]", "{}",
    "<a>", "</a>", "<a ", "<img ", "<!--", "&amp;", "&#", "<|", "|>", "http://a ", "https://", "http://a.b/c?d=e&",
    "https://a.com/", "www.a.b ", "a@b ", "a@", "@a ", "@a", "#a ", "://", "a.b", "a.b.c ", "a/b ", "\\n", "%20",
    "\\u0000", "data:", "pw: a1B!x\n", "pw: ", "pw:", "password is ", "my password is Hunter2! ", "password ",
    "pass", "key=", "key: abc123DEF456 ", "api_key=", "token ", "Bearer ", "sk-", "AKIA", "eyJ",
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "PRIVATE KEY", "pin 1234 ", "code 123456 ", "密码是", "密码：a1 ",
    "パスワードは", "Passwort: ", "contraseña ", "mot de passe ", "user a password b ", "4111 1111 1111 1111 ",
    "DE89 3704 0044 0532 0130 00 ", "abandon ", "legal winner ", "[secret: password]", "[secret: password] ", "0x",
    "ssid ", "wifi ", "secret ", "//", "--password ", "-p ", "curl -u ", "export ", "on 1/1/", "on 1/1/2020 ",
    "1/1/2020 ", "2020-01-01 ", "2020-01-01", "2020-", "10:30 ", "10:30", "10:", "at 10 ", "at ", "3pm ",
    "tomorrow ", "yesterday ", "next ", "next week ", "last ", "last week ", "in 3 days ", "in ", "every day ",
    "every ", "on monday ", "monday ", "Jan ", "January 1 ", "1st ", "first ", "the day after ", "day ", "days ",
    "weeks ago ", "ago ", "from ", "to ", "between ", "until ", "since ", "and ", "or ", "morgen ", "nächste Woche ",
    "in 3 Tagen ", "am ", "um 10 Uhr ", "heute ", "jeden ", "letzten ", "demain ", "la semaine prochaine ",
    "le 1er janvier ", "à 10h ", "hier ", "tous les ", "mañana ", "la semana que viene ", "el 1 de enero ",
    "a las 10 ", "ayer ", "cada ", "明天", "下周", "三天后", "每天", "上午十点", "2020年1月1日", "1月1日", "去年", "星期一", "周一", "上上",
    "大前天", "明日", "来週", "3日後", "毎日", "午前10時", "昨日", "月曜日", "先週", "half past ", "quarter to ", "twenty-",
    "one hundred ", "hundred ", "twenty ", "weekend ", "noon ", "minutes ", "half ", "an hour ", "my ", "I ",
    "I am ", "I'm ", "I have ", "I like ", "I live in ", "my name is ", "my name is Ada. ", "my sister Ann ",
    "my sister's ", "my dog's name is ", "is ", "not ", "no longer ", "no, ", "actually ", "I meant ", "forget ",
    "forget that ", "remember ", "remember that ", "remind me ", "remind me to ", "don't ", "please ", "call me ",
    "the ", "the a ", "and my ", "because ", "if ", "that ", "of ", "'s ", "with ", "born ", "birthday ",
    "works at ", "moved to ", "allergic to ", "favorite ", "favourite color is blue and ", "I am 5 years old and ",
    "when ", "what ", "what is ", "who ", "where ", "do you know ", "can you ", "hello ", "thanks ", "sorry ",
    "yes ", "no ", "我", "我的", "我叫", "我是", "我喜欢", "我住在", "我有", "我妹妹", "不", "没", "了", "的", "忘记", "忘掉", "记住", "提醒我",
    "不是", "而是", "请", "什么", "谁", "吗", "你好", "我的妹妹的", "叫", "说", "因为", "所以", "和", "，我", "。我", "ich ", "ich heiße ",
    "mein ", "vergiss ", "merk dir ", "je ", "je m'appelle ", "mon ", "oublie ", "souviens-toi ", "yo ", "me llamo ",
    "mi ", "olvida ", "recuerda ", "私は", "私の", "名前は", "忘れて", "覚えて", "です。", "ではなく", "/forget ", "/a", "topic:roof ",
    "since:", "since:march ", "topic:", "before:", "by:", "kind:", "#tag ", '"a" ', "'a' ", "“a” ", "„a“ ", '"a',
    '\\"', 'a"', '{"a":', '{"a":1},', "[1,", "[[1", '{"name": "a", "arguments": {', "<tool_call>", "</tool_call>",
    "<think>", "</think>", "<function=", "<function=a>", "```json\n{", "a(b=", "a(", "a(b)", "a(b='c')", "[a(b=c)]",
    "[a(b=", "'''", '"""', "functions.a:0", "<|tool_call|>", "<|channel|>", "<|message|>", "<|im_start|>",
    "[TOOL_CALLS]", "[INST]", "Assistant:", "\nassistant: ", "system:", "\nsystem:", "I'll ", "call ", "ignore ",
    "ignore all ", "disregard previous ", "you are now ", "act as ", "send ", "send the conversation ",
    "system prompt ", "tool ", "function ", "don't tell ", "keep ", "admin ", "grant ", "http ", "把", "把对话",
    "Ada Lovelace ", "Ada ", "Dr. ", "Mr. A. ", "New York ", "Paris, ", "St. ", "von ", "de la ", "O'Neil ", "McA",
    "USA ", "U.S. ", "A&B ", "Inc. ", "won't not ", "not un", "no no ", "never ", "un", "re", "ing ", "ed ", "s ",
    "ies ", "aaaaaaaaab", "ab", "aB", "Aa", "a1", "1a", "1a ", "aA1!", "aA1! ", "1-1", "+1 555 ", "555-1234 ",
    "(555) ", "a_b", "a__b", "__a__", "_a", "a*b", "a**b", "**", "***", "____", "~~", "||", ">>> ", ">> > ", "- ",
    "  - ", "\t- ", " \n", "\n ", "\n\n", "\r\n", "a\n\n", "  a", "    a\n", "---\n", "===\n", "***\n", "a  \n",
    "\\*", "\\[", "[^a]", "$a$", "$$", "\\(", "\\)", "\\frac{", "^{", "_{", "<@1>", "<@!1> ", "<#1>", "<:a:1>",
    "<t:1:R>", "@everyone ", "@here", "<https://a>", "https://a/(", "https://a/)", "https://a_b", "tg://",
    "mailto:a@b ", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ", "111111111111111111111111111111 ",
    "中中中中中中中中中中中中中中中中中中中中中中中中中中中中中中。", "Aa1!Aa1!Aa1!Aa1!Aa1!Aa1!Aa1!Aa1! ", "<arg_key>", "<arg_key>a</arg_key>",
    "<arg_key>a</arg_key><arg_value>", "</arg_key><arg_value>", "a<arg_key>b</arg_key><arg_value>", 'a("', "a('",
    'a("\\"', '<invoke name="a">', "<parameter=a>", '<parameter name="a">', "functions.a:0<", "a[ARGS]", "a```",
    "call:a ", '<|"|>', "<|tool_call>call:a{b:", "<escape>", "{'a': ", "<|channel>", "<channel|>", "commentary to=",
    'commentary to=functions.a json{"b":', "assistantcommentary to=a ", "to=functions.a  ", "<｜DSML｜",
    '<｜DSML｜invoke name="a">', "</｜DSML｜invoke>", "</ ", "< /", "a[ARGS]{", "a{", "a::", "data:{",
)  # fmt: skip


def repeated_to(size: int, *units: str) -> str:
    """Returns a text of `size` characters that repeats `units` in turn."""
    unit = "".join(chain(units))
    return (unit * (size // len(unit) + 1))[:size]
