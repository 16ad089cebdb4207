"""The catalogue is complete in every language."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import AttachmentKind, Chunk, Inbound, Place
from channels.markup import telegram
from gateway.commands.table import TABLE, find, parse
from gateway.pipeline.course import Heard
from gateway.reception.backlog import Unstored
from gateway.wording.phrases import wording
from gateway.wording.texts import CATALOGUE, Texts, heard_in, part_of, spoken, written_in
from languages import Language, source
from tests.kit.bench import Bench, Screen
from tests.kit.fakes import Clock, ScriptedModel
from tests.kit.tables import each_row

from agents.llm import (  # isort: skip
    BadCompletion, ContextOverflow, ModelAuth, ModelError, ModelRateLimited, ModelRefused, ModelUnavailable,
)  # fmt: skip


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_language_has_the_same_texts_with_the_same_fields() -> None:
    """A missing text would be an error in the middle of an answer."""
    english = {key: _fields(text) for key, text in CATALOGUE["en"].items()}
    for language in CATALOGUE:
        assert {key: _fields(text) for key, text in CATALOGUE[language].items()} == english


@pytest.mark.parametrize("language", CATALOGUE)
def test_no_text_is_written_twice(language: Language) -> None:
    """The second would hide the first without a word."""
    lines = source(language, "texts").partition("\ntexts:\n")[2].splitlines()
    keys = [line.partition(": ")[0] for line in lines if line.startswith("  ") and not line.startswith("  #")]
    assert sorted(keys) == sorted(set(keys)) and len(keys) == len(wording(language)["texts"])


@pytest.mark.parametrize("language", CATALOGUE)
def test_no_line_break_is_written_out(language: Language) -> None:
    assert [key for key, text in CATALOGUE[language].items() if "\\n" in text] == []


#: Groups of texts of which some are for admins alone or the same everywhere, or which never stand side by side.
_IN_PART = {"example", "help", "pair", "dead", "night", "jobs", "note"}


@pytest.mark.parametrize("language", ["de", "es", "fr", "ja"])
def test_no_answer_mixes_languages(language: Language) -> None:
    """Texts of one group are put together, so they are all translated or none is."""
    translated = set(wording(language)["texts"])
    half = {key.partition(".")[0] for key in translated} - _IN_PART
    assert {key for key in CATALOGUE["en"] if key.partition(".")[0] in half} <= translated


@each_row(("text", "app", "told"), [
        ("/why all", "de", "de"), ("/why all", "", "en"), ("/start", "zh-hans", "zh"), ("/memory edit m_eslas el", "", "en"), ("/remember 我喜欢茶", "", "zh"),
        ("/remember ich mag keinen Tee", "en", "de"), ("hola, ¿cómo estás?", "de", "es"), ("[sticker 👍]", "de", "de"),
        ("[voice message; nobody can listen to it]", "de", "de"),
    ])  # fmt: skip
def test_the_words_of_a_command_tell_no_language(text: str, app: str, told: Language) -> None:
    """They are English whoever types them, and so are the labels of attachments."""
    said = Inbound(
        channel="telegram", platform="telegram", bot_id="1", update_key="1", chat="1", chat_kind="private",
        author_id="1", author_name="Ada", message_id="1", text=text, sent_at=0, language=app,
    )  # fmt: skip
    assert heard_in(said, "en") == told


@each_row("command", TABLE)
def test_every_command_has_a_help_line(command: object) -> None:
    assert f"help.{command.name}" in CATALOGUE["en"]  # type: ignore[attr-defined]


@each_row(
    "error", [ModelError, ModelAuth, ModelUnavailable, ModelRateLimited, ContextOverflow, ModelRefused, BadCompletion]
)
def test_every_model_error_has_words_for_the_person(error: type[ModelError]) -> None:
    """The words of an error for a person are decided in one place."""
    assert f"error.{error.code}" in CATALOGUE["en"]


@each_row("why", [
        "too_large", "no_reader", "unreadable", "unreachable", "no_transcriber", "not_transcribed", "empty", "off",
        "locked", "no_sight", "no_model",
    ])  # fmt: skip
def test_every_reason_an_attachment_was_of_no_use_has_words_for_the_person(why: str) -> None:
    for language in CATALOGUE:
        line = CATALOGUE[language][f"attach.{why}"]
        assert _fields(line) == {"name"} and "\n" not in line


def test_an_attachment_is_called_by_its_name_where_it_has_one() -> None:
    """Names come from people: of any length, over several lines."""
    texts = Texts("en")
    assert texts.attachment("file", "report.pdf") == "report.pdf"
    assert texts.attachment("file", "two\nlines {why}.txt") == "two lines (why).txt"
    assert texts.attachment("file", "my_long_name.tar.gz") == "my_long_name.tar.gz"
    assert len(texts.attachment("file", "x" * 1_000)) == 60
    for kind in get_args(AttachmentKind):
        for language in CATALOGUE:
            assert Texts(language).attachment(kind, " ") == CATALOGUE[language][f"attach.{kind}"]


def _told(name: str) -> Chunk:
    texts = Texts("en")
    (chunk,) = telegram(texts("attach.empty", name=texts.attachment("file", name)))
    return chunk


@each_row(
    "name",
    ["**all**", "*a*", "__init__.py", "_a_", "`rm`", "||b||", "~~c~~", "[d](http://e.example)", "<@1>", "a\\*b", "```"],
)
def test_the_name_of_an_attachment_is_never_markdown(name: str) -> None:
    """Whoever sends a file could else have the bot say something in bold, or show a link under other words."""
    assert _told(name).markup == _told("plain.txt").markup


@given(st.text("*_`~|\\[]()<>!#-x \n", max_size=40))
def test_no_name_of_an_attachment_is_markdown(name: str) -> None:
    assert _told(name).markup == _told("plain.txt").markup


def test_dates_are_read_where_the_person_lives() -> None:
    """Near midnight the day depends on the timezone."""
    late = 1_795_301_999_000  # 21 November 2026, 22:59:59 UTC
    assert Texts("en", "UTC").date(late) == "21 Nov 2026"
    assert Texts("en", "Asia/Shanghai").date(late) == "22 Nov 2026"
    assert Texts("zh", "Asia/Shanghai").date(late) == "2026年11月22日"


def test_an_answer_is_in_the_language_of_the_message() -> None:
    assert written_in("我住在里斯本", "en") == "zh"
    assert written_in("I live in Lisbon", "zh") == "en"
    assert written_in("東京に住んでいます", "en") == "ja"
    assert written_in("Lisbon", "fr") == "fr"
    assert spoken("zh", "en") == "zh" and spoken(None, "en") == "en" and spoken("fr", "zh") == "fr"
    assert spoken("pt", "zh") == "zh"


@pytest.mark.parametrize(
    ("language", "date"),
    [
        ("de", "21. November 2026"),
        ("es", "21 de noviembre de 2026"),
        ("fr", "21 novembre 2026"),
        ("ja", "2026年11月21日"),
    ],
)
def test_a_date_is_written_as_its_language_writes_it(language: Language, date: str) -> None:
    assert Texts(language).date(1_795_262_400_000) == date


#: The texts that a newcomer meets; the rest of the catalogue may be said in English.
ESSENTIAL = {
    "day.today", "day.yesterday", "day.on", "first.private", "yes", "no", "words", "memory", "help.head", "start.done",
    "new.done", "command.unknown", "memory.none", "memory.head", "memory.line", "remember.done", "correct.done",
    "forget.nothing", "forget.head", "forget.counts", "forget.how", "forget.one", "forget.done", "forget.kept",
    "plain.forget", "plain.wrong", "undo.done", "why.head", "why.nothing", "error.model", "error.internal",
}  # fmt: skip


def test_what_a_newcomer_meets_is_said_in_every_language() -> None:
    """A half-translated receipt for something erased would not be understood; all languages have the same texts."""
    own = {code: set(wording(code)["texts"]) for code in CATALOGUE if code not in ("en", "zh")}
    assert all(keys >= ESSENTIAL for keys in own.values())
    assert len({frozenset(keys) for keys in own.values()}) == 1


@pytest.mark.parametrize("language", ["de", "es", "fr", "ja"])
def test_the_web_page_is_said_in_every_language(language: Language) -> None:
    """A page shows texts of many groups side by side, so none of its own is left in English."""
    page = {key for key in CATALOGUE["en"] if key.startswith(("page.", "web.", "jobs.figure."))}
    page |= {"jobs.off", "jobs.never", "jobs.last", "jobs.state.done", "jobs.state.running"}
    assert page <= set(wording(language)["texts"])


@pytest.mark.parametrize(
    ("language", "formal"),
    [
        ("fr", r"\b[Vv](?:ous|otre)\b|\b\w+ez-|(?:^|[.:!?] )[A-Z]\w+ez\b"),
        ("de", r"\b(?:Ihr|Ihre[mnrs]?|Ihnen)\b"),
        ("es", r"\b[Uu]sted"),
        ("zh", "您"),
    ],
)
def test_the_page_addresses_its_visitor_as_a_friend_does(language: str, formal: str) -> None:
    texts = {key: text for key, text in CATALOGUE[language].items() if key.startswith(("page.", "see.", "on_page."))}
    assert [key for key, text in texts.items() if re.search(formal, text)] == []


def test_what_changed_within_a_day_is_shown_with_the_time() -> None:
    noon, hour, day = 1_795_262_400_000, 3_600_000, 86_400_000
    assert Texts("en").span(noon, noon + hour) == ("21 Nov 2026 12:00", "21 Nov 2026 13:00")
    assert Texts("en").span(noon, noon + day) == ("21 Nov 2026", "22 Nov 2026")


@pytest.mark.parametrize("language", CATALOGUE)
def test_examples_are_commands_of_this_bot(language: Language) -> None:
    """Whoever types one as it stands must not be told that there is no such thing."""
    examples = [
        line.partition(" – ")[0]
        for key, text in CATALOGUE[language].items()
        if key.startswith("example.")
        for line in text.splitlines()
    ]
    typed = [parse(line) for line in examples]
    assert len(typed) > 40 and all(one is not None and find(one[0]) for one in typed), examples
    parts = [one[1].split()[1] for one in typed if one is not None and one[1].startswith("list ")]
    assert len(parts) == 2 and all(map(part_of, parts)), parts


# The language in which the author of a message uses the platform


@each_row(
    ("code", "language"), [("pt-BR", "en"), ("zh-CN", "zh"), ("de", "de"), ("FR", "fr"), ("", "en"), ("tlh", "en")]
)
def test_a_language_with_a_region_is_that_language(code: str, language: Language) -> None:
    """Platforms name both; where there are no texts, the default stands."""
    assert spoken(code or None, "en") == language


# Texts of which nothing is stored


class Shut(Screen):
    async def append(self, place: Place, turn: int, text: str) -> None:
        raise BrokenPipeError


async def test_a_terminal_that_is_closed_lets_no_error_out(tmp_path: Path, clock: Clock) -> None:
    """The text is lost, as it may be; its message waits in the inbox."""
    screen = Shut(stream=True)
    heard = Heard(inbox_id=1, inbound=Bench(tmp_path, ScriptedModel(), screen, clock).inbound("hello"))
    await Unstored({screen.id: screen}, clock).say_of(heard, "I can't save that.")
    assert screen.shown == []
