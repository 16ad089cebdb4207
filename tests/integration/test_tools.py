"""The tools of an agent through real turns: what each does, on whose memory, and how often."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agents.llm import ModelUnavailable
from memory.errors import StorageError
from tests.kit.bench import Bench, Screen, kept
from tests.kit.fakes import DAY, NOON, Clock, ScriptedModel, calls
from tests.kit.patience import until
from tests.kit.talk import private


@pytest.fixture
def bench(tmp_path: Path, clock: Clock) -> Bench:
    return Bench(tmp_path, ScriptedModel(), Screen(), clock)


async def use(bench: Bench, tool: str, *, person: str = "ada", chat: str | None = None, **arguments: str) -> str:
    """Have the model call one tool in a turn of `person`; returns what the tool told it."""
    bench.model.answers = [calls((tool, json.dumps(arguments))), "All right."]
    await bench.say("please see to it", person=person, chat=chat)
    return results(bench)[-1]


def results(bench: Bench) -> list[str]:
    return [message.content for message in bench.model.requests[-1].messages if message.role == "tool"]


async def facts(bench: Bench, person: str = "ada", chat: str | None = None) -> list[tuple[str, str]]:
    return sorted((memory.key, memory.value) for memory in await bench.remembered(person, chat))


async def test_now_is_the_time_where_the_person_lives(bench: Bench) -> None:
    async with bench.running():
        assert await use(bench, "now") == "21 Nov 2026 12:00 (UTC)"


async def test_search_finds_memories_with_ids_and_words_with_dates(bench: Bench) -> None:
    """The id is what the other tools need; the date says how much it still counts."""
    async with bench.running():
        allergy = await kept(bench, "I'm allergic to peanuts")
        await bench.say("the peanuts at the fair were stale")
        bench.clock.move(days=1)
        told = await use(bench, "search_memory", query="peanuts")
        nothing = await use(bench, "search_memory", query="submarine")
    assert f"- Ada: allergy: peanuts (told 21 Nov 2026) [{allergy.short_id}]" in told.splitlines()
    assert "- Ada said: “the peanuts at the fair were stale” (21 Nov 2026)" in told.splitlines()
    assert nothing == "Nothing in memory matches."


async def test_what_a_person_forwards_or_quotes_is_not_kept_as_theirs(bench: Bench) -> None:
    """The allergy is a stranger's, whatever a model makes of it. What the person says themselves is kept."""
    asked = calls(("remember_fact", json.dumps({"text": "allergic to penicillin", "key": "allergy"})))
    stranger = "I am allergic to penicillin, please note it in the file"
    async with bench.running():
        for text, forwarded in ((stranger, True), (f'Tom just sent: "{stranger}"', False), ("what do you say?", False)):
            bench.model.answers = [asked, "All right."]
            inbound = replace(bench.inbound(text), forwarded=forwarded)
            await bench.router.on_inbound(inbound)
            await bench.router.settled(inbound.place)
            assert results(bench)[-1].startswith("Error: Not saved")
        bench.model.answers = [asked, "All right."]
        await bench.say("remember that I'm allergic to penicillin")
        assert await facts(bench) == [("allergy", "allergic to penicillin")]


async def test_a_model_hears_that_a_secret_was_masked(bench: Bench) -> None:
    """Else it tells the person that their password is saved."""
    async with bench.running():
        saved = await use(bench, "remember_fact", text="my password is hunter2Quaxolia", key="note")
        [memory] = await bench.remembered("ada")
        tea = await use(bench, "correct_fact", id=memory.short_id, value="tea")
        [memory] = await bench.remembered("ada")
        corrected = await use(bench, "correct_fact", id=memory.short_id, value="ghp_" + "a1B2" * 9)
    assert ["masked" in told for told in (saved, tea, corrected)] == [True, False, True]


async def test_what_is_searched_for_stays_fresh_and_what_comes_up_by_itself_does_not(bench: Bench) -> None:
    """Only use on purpose counts against decay."""
    async with bench.running():
        for n in range(60):
            await bench.say(f"/remember locker {n} is {'blue' if n % 2 else 'red'}")
        bench.clock.move(days=3)
        await bench.say("what colour is locker 3?")
        why = await bench.memory.browse.why(await bench.context())
        assert why is not None
        recalled = {entry.item_id for entry, _ in why.entries if entry.item == "memory" and entry.placed == "recalled"}
        by_itself = {
            memory.id: memory for memory in await bench.memory.browse.memories(await bench.context(), limit=99)
        }
        bench.clock.move(days=3)
        await use(bench, "search_memory", query="locker 3")
        on_purpose = {
            memory.id: memory for memory in await bench.memory.browse.memories(await bench.context(), limit=99)
        }
    assert recalled and all(by_itself[i].last_reinforced_at < NOON + DAY for i in recalled)
    refreshed = [memory.value for memory in on_purpose.values() if memory.last_reinforced_at >= NOON + 6 * DAY]
    assert "locker 3 is blue" in refreshed and len(refreshed) <= 8


async def test_remember_keeps_a_statement_and_says_under_which_id(bench: Bench) -> None:
    """With a key it is kept under it, without one the statement is read like any other."""
    async with bench.running():
        keyed = await use(bench, "remember_fact", text="shellfish", key="Allergy")
        read = await use(bench, "remember_fact", text="I live in Lisbon")
        ids = {memory.value: memory.short_id for memory in await bench.remembered()}
        assert keyed == f"Saved: Ada: allergy: shellfish [{ids['shellfish']}]"
        assert read == f"Saved: Ada: home: Lisbon [{ids['Lisbon']}]"
        assert await facts(bench) == [("allergy", "shellfish"), ("home", "Lisbon")]
        assert await facts(bench, "bob") == []


async def test_what_holds_nothing_is_not_said_to_be_saved(bench: Bench) -> None:
    async with bench.running():
        assert (await use(bench, "remember_fact", text="42")).startswith("Not saved")
        assert await facts(bench) == []


async def test_correct_puts_a_new_version_in_the_place_of_the_old_one(bench: Bench) -> None:
    """The old one keeps its dates, and what is said already changes nothing."""
    async with bench.running():
        old = await kept(bench, "I'm allergic to peanuts")
        bench.clock.move(days=1)
        told = await use(bench, "correct_fact", id=old.short_id, value="walnuts")
        (new,) = await bench.remembered()
        same = await use(bench, "correct_fact", id=new.short_id, value="Walnuts")
        late = await use(bench, "correct_fact", id=old.short_id, value="almonds")
        row = await one(bench, "select valid_until, superseded_by from memories where id = ?", old.id)
        assert told == (f"Corrected: Ada: allergy: walnuts [{new.short_id}], instead of Ada: allergy: peanuts.")
        assert (row["valid_until"], row["superseded_by"]) == (new.valid_from, new.id)
        assert same == f"Nothing changed: {new.short_id} says just that."
        assert late.startswith(f"Error: {old.short_id} is an old version.")
        assert await facts(bench) == [("allergy", "walnuts")] and new.confirmed


async def test_confirm_makes_a_memory_sure_and_keeps_it_from_fading(bench: Bench) -> None:
    async with bench.running():
        await bench.say("I live in Lisbon")
        await bench.memory.learner.flush((await bench.context()).session.id, "test")
        (home,) = await bench.remembered()
        assert not home.confirmed
        bench.clock.move(days=2)
        told = await use(bench, "confirm_fact", id=home.short_id)
        (row,) = await bench.remembered()
    assert told == "Confirmed: Ada: home: Lisbon. It will not fade."
    assert row.confirmed and row.confidence == 1.0 and row.last_reinforced_at >= NOON + 2 * DAY


@pytest.mark.parametrize("tool", ["correct_fact", "confirm_fact", "forget_fact"])
async def test_the_id_of_another_person_answers_like_an_unknown_one(bench: Bench, tool: str) -> None:
    """Else ids could be tried out, and what is not one's own be changed."""
    value = {"value": "walnuts"} if tool == "correct_fact" else {}
    async with bench.running():
        allergy = await kept(bench, "I'm allergic to peanuts")
        for person, chat in (("bob", None), ("bob", "club"), ("ada", "club")):
            theirs = await use(bench, tool, person=person, chat=chat, id=allergy.short_id, **value)
            nobodys = await use(bench, tool, person=person, chat=chat, id="m_zzzzzz", **value)
            assert theirs.replace(allergy.short_id, "m_zzzzzz") == nobodys
            assert nobodys.startswith("Error: ")
            assert bench.screen.texts[-1] == "All right."
        assert await bench.remembered() == [allergy]


@pytest.mark.parametrize("tool", ["correct_fact", "confirm_fact", "forget_fact"])
async def test_in_a_group_nobody_changes_what_somebody_else_said(bench: Bench, tool: str) -> None:
    """Everybody sees it there; only the one who said it may change it."""
    value = {"value": "walnuts"} if tool == "correct_fact" else {}
    async with bench.running():
        allergy = await kept(bench, "I'm allergic to peanuts", chat="club")
        told = await use(bench, tool, person="bob", chat="club", id=allergy.short_id, **value)
        assert told.startswith("Error: ") and "Only the person who said it" in told
        assert await bench.remembered("ada", "club") == [allergy]


async def test_forget_asks_and_a_yes_forgets(bench: Bench) -> None:
    """The model can't forget anything; the person reads the question with the reply and decides."""
    async with bench.running():
        allergy = await kept(bench, "I'm allergic to peanuts")
        told = await use(bench, "forget_fact", id=allergy.short_id)
        assert told.startswith("Nothing is forgotten yet.")
        reply = bench.screen.texts[-1]
        assert (
            reply.startswith("All right.\n")
            and f"Forget {allergy.short_id}" in reply
            and "no: nothing changes" in reply
        )
        assert await bench.remembered() == [allergy]
        await bench.say("yes")
        assert bench.screen.texts[-1].startswith("Forgotten. ")
        assert await bench.remembered() == []


async def test_what_was_said_is_forgotten_by_the_id_it_was_recalled_with(bench: Bench) -> None:
    """Nothing was learned from it, so no memory has an id; others' messages are nobody's to forget."""
    async with bench.running():
        await bench.say("the heating engineer is called Mr Ferdinand Ohm")
        [said] = await bench.memory.database.read(
            lambda reader: reader.ids("select id from messages where role = 'user'")
        )
        told = await use(bench, "forget_fact", id=f"s_{said}")
        assert told.startswith("Nothing is forgotten yet.")
        assert f"Forget s_{said} “the heating engineer is called Mr Ferdinand Ohm”?" in bench.screen.texts[-1]
        told = await use(bench, "forget_fact", person="bob", id=f"s_{said}")
        assert told.startswith("Error: ") and "Ohm" not in told


@pytest.mark.parametrize("answer", ["no", "hm, what about tea?"])
async def test_anything_but_a_yes_keeps_it(bench: Bench, answer: str) -> None:
    async with bench.running():
        allergy = await kept(bench, "I'm allergic to peanuts")
        await use(bench, "forget_fact", id=allergy.short_id)
        await bench.say(answer)
        await bench.say("yes")
        assert await bench.remembered() == [allergy]


async def test_nobody_else_answers_the_question(bench: Bench) -> None:
    async with bench.running():
        allergy = await kept(bench, "I'm allergic to peanuts", chat="club")
        await use(bench, "forget_fact", chat="club", id=allergy.short_id)
        await bench.say("yes", person="bob", chat="club")
        assert await bench.remembered("ada", "club") == [allergy]
        await bench.say("yes", chat="club")
        assert await bench.remembered("ada", "club") == []


async def test_one_turn_asks_about_one_memory(bench: Bench) -> None:
    """A yes to two questions would answer only the last."""
    async with bench.running():
        peanuts = await kept(bench, "I'm allergic to peanuts")
        home = await kept(bench, "I live in Lisbon")
        wanted = [("forget_fact", json.dumps({"id": memory.short_id})) for memory in (peanuts, home)]
        bench.model.answers = [calls(*wanted), "All right."]
        await bench.say("forget both")
        assert [told.startswith("Error: ") for told in results(bench)] == [False, True]
        assert bench.screen.texts[-1].count("Forget m_") == 1
        await bench.say("yes")
        assert await facts(bench) == [("home", "Lisbon")]


async def test_an_effect_happens_once_when_the_turn_is_redone(bench: Bench) -> None:
    """The turn breaks off after its tools; the second attempt pays for no step again and repeats no change."""
    async with bench.running():
        home = await kept(bench, "I live in Lisbon")
        wanted = (
            ("remember_fact", json.dumps({"text": "I like tea"})),
            ("search_memory", json.dumps({"query": "tea"})),
            ("correct_fact", json.dumps({"id": home.short_id, "value": "Porto"})),
            ("forget_fact", json.dumps({"id": home.short_id})),
        )
        bench.model.answers = [calls(*wanted), StorageError("the disk went away"), "Done."]
        await bench.say("do all that")
        await until(lambda: bench.screen.texts[-1].startswith("Done."))
        first, again = bench.model.requests[-2:]
        assert [m.content for m in again.messages if m.role == "tool"] == results(bench)
        assert [m.content for m in first.messages if m.role == "tool"] == results(bench)
        assert await facts(bench) == [("home", "Porto"), ("likes", "tea")]
        tea = next(memory for memory in await bench.remembered() if memory.value == "tea")
        assert (tea.reinforced_count, tea.access_count) == (0, 1)
        count = await one(bench, "select count(*) as n from steps")
        questions = await one(bench, "select count(*) as n from questions")
        assert (count["n"], questions["n"]) == (2, 1)
        assert bench.screen.texts[-1].count("Forget m_") == 1


async def test_a_store_that_fails_is_not_told_as_an_unknown_id(bench: Bench) -> None:
    """Else the model would tell the person that nothing is there; the turn is made again instead."""
    async with bench.running():
        home, write = await kept(bench, "I live in Lisbon"), bench.memory.database.write
        await write(
            lambda tx: tx.run("create trigger full before update on memories begin select raise(fail, 'full'); end")
        )
        bench.model.answers = [calls(("confirm_fact", json.dumps({"id": home.short_id}))), "Done."]
        await bench.say("that is right")
        assert len(bench.model.requests) == 1
        await write(lambda tx: tx.run("drop trigger full"))
        await until(lambda: bench.screen.texts[-1].startswith("Done."))
        assert results(bench) == ["Confirmed: Ada: home: Lisbon. It will not fade."]


async def test_stats_count_what_is_remembered_here(bench: Bench) -> None:
    """By kind, with what is past, and only of this place."""
    bench.more_tools = ("memory_stats",)
    async with bench.running():
        await kept(bench, "I live in Porto")
        await kept(bench, "I like tea")
        bench.clock.move(days=1)
        await kept(bench, "I live in Lisbon")
        told = await use(bench, "memory_stats")
        elsewhere = await use(bench, "memory_stats", person="bob")
    assert told == "Current: 2 facts. Replaced or archived: 1. Messages: 1. The oldest was told 21 Nov 2026."
    assert elsewhere == "Current: nothing. Replaced or archived: 0. Messages: 1."


async def test_an_entity_is_known_by_its_names_and_only_where_it_was_told_of(bench: Bench) -> None:
    """Aliases lead to the same; another person's acquaintances are as unknown as nobody's."""
    async with bench.running():
        dentist = await kept(bench, "my dentist is Dr. Mary Chen")
        note = await kept(bench, "Mary Chen moved to Porto")
        told = await use(bench, "get_entity_info", name="mary chen")
        unknown = await use(bench, "get_entity_info", name="Peter")
        elsewhere = await use(bench, "get_entity_info", person="bob", name="Mary Chen")
        in_group = await use(bench, "get_entity_info", chat="club", name="Mary Chen")
    head, *lines = told.splitlines()
    assert head == "Dr. Mary Chen (person, also called Mary Chen), mentioned 2 times:"
    assert [dentist.short_id in line or note.short_id in line for line in lines] == [True, True]
    assert unknown == "Nothing is known here of 'Peter'."
    assert elsewhere == in_group == "Nothing is known here of 'Mary Chen'."


async def one(bench: Bench, sql: str, *parameters: int) -> dict[str, int]:
    row = await bench.memory.database.read(lambda reader: reader.one(sql, parameters))
    assert row is not None
    return dict(row)


async def test_a_question_that_never_reached_the_person_is_taken_back(bench: Bench) -> None:
    """The model failed after it had asked: a later "yes" to something else must not forget anything."""
    async with bench.running():
        allergy = await kept(bench, "I'm allergic to peanuts")
        wanted = json.dumps({"id": allergy.short_id})
        bench.model.answers = [calls(("forget_fact", wanted)), ModelUnavailable("gone"), "Fine."]
        await bench.say("forget my allergy")
        assert allergy.short_id not in bench.screen.texts[-1]
        await bench.say("yes")
        assert await bench.remembered() == [allergy]


async def test_what_was_forgotten_does_not_come_back_by_the_replies_that_told_it(bench: Bench) -> None:
    """The bot had repeated it, in the turn it was said and later; recall must not bring that up again."""
    async with bench.running():
        bench.model.answers = ["So no peanuts for you.", "Peanuts, you told me.", "Tea, then."]
        await bench.say("I'm allergic to peanuts")
        context = await bench.memory.identities.context(*private("ada"))
        await bench.memory.learner.flush(context.session.id, "test")
        await bench.say("what must I not eat?")
        await bench.say("what shall we drink?")
        [allergy] = await bench.remembered()
        await bench.say(f"/forget {allergy.short_id}")
        await bench.say("yes")
        hits = await bench.memory.browse.search(context, "peanuts allergic eat", limit=20)
        assert all("eanuts" not in hit.text for hit in hits)
        assert any("what must I not eat" in hit.text for hit in hits)


async def test_search_takes_filters_and_says_which_can_not_be_read(bench: Bench) -> None:
    """A model asks for what was told last month as for what is about health; a wrong filter finds nothing silently."""
    async with bench.running():
        allergy = await kept(bench, "I'm allergic to peanuts")
        bench.clock.move(days=3)
        tea = await kept(bench, "I like tea with peanuts")
        by_category = await use(bench, "search_memory", query="peanuts", category="health")
        assert allergy.short_id in by_category and tea.short_id not in by_category
        assert tea.short_id in (recent := await use(bench, "search_memory", since="yesterday"))
        assert allergy.short_id not in recent
        earlier = await use(bench, "search_memory", query="re:peanuts", until="yesterday")
        assert allergy.short_id in earlier and tea.short_id not in earlier
        assert "“banana”" in await use(bench, "search_memory", query="tea", since="banana")
        assert "filter" in await use(bench, "search_memory")
