"""Commands are answered in the language of their person, in all six languages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agents.llm import ModelUnavailable
from agents.spec import ModelSpec
from gateway.actions.memory import MASK
from gateway.wording.texts import CATALOGUE, Texts, spoken
from languages import LANGUAGES, Language
from tests.kit.bench import Handset, Talk
from tests.kit.fakes import Clock

#: A sentence that shows its language, a note that may not, a code to keep, and an unknown command with the one meant.
SAID: dict[Language, tuple[str, str, str, str, str]] = {
    "en": ("I have two cats at home", "Vienna 3/4", "my locker code is 3391", "/mémories", "memory"),
    "zh": ("我家里有两只猫", "免許更新", "我的储物柜密码是3391", "/忘记", "forget"),
    "ja": ("家に猫が二匹います", "免許更新", "ロッカーの暗証番号は3391", "/覚える", "remember"),
    "de": ("ich habe zwei Katzen zu Hause", "Wien 3/4", "mein Spindcode ist 3391", "/löschen", "forget"),
    "fr": ("j'ai deux chats à la maison", "Vienne 3/4", "le code de mon casier est 3391", "/mémoire", "memory"),
    "es": ("tengo dos gatos en casa", "Viena 3/4", "el código de mi taquilla es 3391", "/contraseña", ""),
}


@pytest.fixture
def talk(tmp_path: Path, clock: Clock) -> Talk:
    return Talk(tmp_path, Handset(), clock, *(["Fine."] * 9))


def opening(texts: Texts, key: str) -> str:
    """Returns the beginning of a text, before its first field."""
    return CATALOGUE[texts.language][key].partition("{")[0]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_note_is_taken_in_the_language_that_its_author_wrote_before(talk: Talk, language: Language) -> None:
    """Notes of a few names or characters show no language, or that of a neighbour: 免許更新 may be Chinese."""
    sentence, note, *_ = SAID[language]
    async with talk.running():
        await talk.ask(sentence)
        assert (await talk.ask(f"/remember {note}")).startswith(opening(Texts(language), "remember.done"))


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_new_conversation_goes_on_in_the_same_language(talk: Talk, language: Language) -> None:
    """The messages before it are no part of its window, but their author is the same."""
    sentence, note, *_ = SAID[language]
    async with talk.running():
        await talk.ask(sentence)
        assert await talk.ask("/new") == Texts(language)("new.done")
        assert (await talk.ask("/stop")) == Texts(language)("stop.nothing")
        assert (await talk.ask(f"/remember {note}")).startswith(opening(Texts(language), "remember.done"))
        talk.model.answers = [ModelUnavailable("off")]
        assert await talk.ask("12 + 30 = ?") == Texts(language)("error.model_unavailable")


@pytest.mark.parametrize(("app", "agents"), [("zh", "en"), ("ja", "en"), ("", "ja"), ("", "zh")])
async def test_characters_of_both_languages_are_read_in_that_of_the_app_or_agent(
    talk: Talk, app: str, agents: Language
) -> None:
    """Nothing else tells what a first message of characters alone is written in."""
    talk.spec = {"language": agents}
    async with talk.running():
        inbound = replace(talk.inbound("/remember 免許更新"), language=app)
        await talk.router.on_inbound(inbound)
        await talk.router.settled(inbound.place)
    assert talk.phone.last.text.startswith(opening(Texts(spoken(app, agents)), "remember.done"))


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_code_that_was_masked_is_not_said_to_be_kept(talk: Talk, language: Language) -> None:
    """Who hears only that it is saved looks for the code on the day they need it."""
    async with talk.running():
        await talk.ask(SAID[language][0])
        answer = await talk.ask(f"/remember {SAID[language][2]}")
        assert MASK in answer and answer.endswith(Texts(language)("remember.masked"))
        assert Texts(language)("remember.masked") not in await talk.ask("/remember 3 + 4 = 7, says Ana")


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_command_in_other_letters_is_no_talk(talk: Talk, language: Language) -> None:
    """A model would answer it as a message, and keep it as one."""
    sentence, *_, command, meant = SAID[language]
    texts = Texts(language)
    async with talk.running():
        await talk.ask(sentence)
        hint = texts("command.hint", name=meant) if meant else ""
        assert await talk.ask(command) == texts("command.unknown", name=command[1:], hint=hint)
        for path in ("/größe/maße", "/家/猫.txt", "/。", "/你好，我是"):
            assert await talk.ask(path) == "Fine."
    assert len(talk.model.requests) == 5


@pytest.mark.parametrize("language", LANGUAGES)
async def test_models_agents_and_links_are_told_in_ones_own_language(talk: Talk, language: Language) -> None:
    """Half an answer in English is none to who can't read it."""
    talk.models = tuple(ModelSpec(provider="openai", model=name) for name in ("large", "small"))
    talk.databases = {"assistant": "remora.db", "research": "remora.db"}
    texts = Texts(language)
    async with talk.running():
        await talk.ask(f"/profile language {language}")
        for command, key in (
            ("/model", "model.now"), ("/model huge", "model.unknown"), ("/model small", "model.chosen"),
            ("/agent", "agent.now"), ("/agent x", "agent.unknown"), ("/agent research", "agent.chosen"),
            ("/link", "link.code"), ("/link x", "link.no_code"), ("/link CDFG-2346", "link.wrong"),
            ("/unlink", "unlink.none"), ("/profile manner", "manner.none.private"),
            ("/profile manner short", "manner.set.private"),
        ):  # fmt: skip
            assert (await talk.ask(command)).startswith(opening(texts, key)), command
    for group in ("model", "agent", "link", "unlink", "manner", "form"):
        same = {key for key in CATALOGUE["en"] if key.startswith(f"{group}.") and key != "manner.of"}
        assert language == "en" or not {key for key in same if CATALOGUE[language][key] == CATALOGUE["en"][key]}


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_words_behind_commands_may_be_ones_own(talk: Talk, language: Language) -> None:
    """Who ends a task with "fertig" wants no task of that name."""
    texts = Texts(language)
    words = {name: texts(f"word.{name}").split("|") for name in ("done", "auto", "on", "off", "all")}
    async with talk.running():
        await talk.ask(f"/profile language {language}")
        for word in words["done"]:
            await talk.ask("/task Porto")
            assert await talk.ask(f"/task {word}") == texts("task.done", task="Porto")
        for switch in ("off", "on"):
            for word in words[switch]:
                assert await talk.ask(f"/profile manner {word.upper()}") == texts(f"manner.{switch}.private")
        for word in words["auto"]:
            assert "UTC" in await talk.ask(f"/profile timezone {word}")
        assert await talk.ask(f"/why {words['all'][0]}") == texts("why.none")
