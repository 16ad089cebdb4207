"""Everybody tells something everywhere, then everybody reads everything everywhere: who sees what (DESIGN 5.2)."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from memory.chat.edits import Edits
from memory.oversight import Overseer
from memory.people.linking import Linking
from memory.service import Service
from tests.kit.canaries import PLACES, Spot, World
from tests.kit.stores import AGENTS
from tests.kit.ways import PROGRAMS, WAYS, faults

PEOPLE = ("ada", "bob", "cyd", "ada's phone")
#: A thread that shares its chat's memory reads what the chat does (tried in test_scope_machine).
SPOTS = [
    Spot(person=person, place=place, agent=agent)
    for person in PEOPLE
    for place in PLACES
    if place != "club/talk"
    for agent in AGENTS
]

#: Public methods that give out no remembered text, and why.
_OWN = "gives back what its caller has just handed in, or nothing"
_COUNTS = "counts, compared with what is listed (`World.miscounts`)"
_QUEUE = "rows of one session's mail, for the channel that shows them there"
_OPERATOR = "the operator's own file, for the owner they name; what came of it is read by all ways"
_ROOM = "states and times of the mailbox, no words"
_RUNS = "names, times and figures of runs"
NOT_READING = {
    **dict.fromkeys(
        ("Access.allow", "Access.block", "Access.keep", "Access.move_group", "Access.open_pairing", "ApiKeys.make",
         "Backups.begin", "Compaction.close", "Compaction.settled", "Compaction.soon", "Edits.ask",
         "Edits.branch", "Edits.name_talk", "Edits.pin_talk", "Titles.close", "Titles.settled", "Titles.soon",
         "Edits.ask_again", "Edits.choose_agent", "Edits.choose_model", "Edits.learn_manner", "Edits.leave_manner",
         "Edits.set_language", "Edits.set_learning", "Edits.set_manner", "Edits.set_task", "Edits.set_timezone",
         "Edits.settle", "Edits.start_window", "Forgetting.begin", "Forgetting.close", "Jobs.begin", "Learner.heard",
         "Linking.ask", "Linking.link", "Linking.settle", "Linking.unlink", "Mailbox.attach", "Mailbox.dead_letter",
         "Mailbox.dismiss", "Mailbox.fail_and_notify", "Mailbox.give_up", "Mailbox.hold", "Mailbox.not_sent",
         "Mailbox.offer", "Mailbox.place_holder", "Mailbox.post", "Mailbox.presence", "Mailbox.receive",
         "Mailbox.refuse", "Mailbox.say_anew", "Mailbox.show_again", "Mailbox.was_sent", "OpenQuestions.cancel",
         "OutsideCalls.agree", "OutsideCalls.end", "OutsideCalls.keep_tools", "Overseer.ask", "Privacy.follow_up",
         "Privacy.learn_about", "Privacy.learn_from", "Privacy.open_code", "Privacy.spoil", "Reminders.after",
         "Reminders.at", "Reminders.by_rule", "Reminders.put_off", "Reminders.reached", "Reminders.read",
         "Reminders.read_bare", "Reminders.read_time", "Reminders.retimed", "Reminders.several",
         "Reminders.task_ending", "Service.close", "Service.open", "Service.over", "Service.renew_agents",
         "Stats.book", "Turns.finish", "Turns.keep_step", "Turns.record", "Visits.choose_agent", "Visits.is_noted",
         "Visits.open_code", "Visits.sign_out", "Visits.sign_out_everywhere", "Visits.visited"),
        _OWN,
    ),
    **dict.fromkeys(
        ("Jobs.last", "Jobs.latest", "Jobs.newest", "Jobs.once", "Jobs.run", "Jobs.unfinished"),
        _RUNS,
    ),
    **dict.fromkeys(
        ("Stats.stats", "Stats.status", "Stats.used_by", "Browse.learned", "Browse.used"),
        _COUNTS,
    ),
    **dict.fromkeys(
        ("Transfer.bring", "Transfer.preview"),
        _OPERATOR,
    ),
    **dict.fromkeys(
        ("Mailbox.due", "Mailbox.oldest"),
        _ROOM,
    ),
    **dict.fromkeys(
        ("Mailbox.in_doubt", "Mailbox.lost_placeholder", "Mailbox.sent", "Mailbox.take"),
        _QUEUE,
    ),
    "Browse.waiting": "a number, of the asker's own private chats (test_page_files)",
    "ApiKeys.of": "the asker's own keys (test_keys)",
    "ApiKeys.revoke": "whether the asker had such a key (test_keys)",
    "ApiKeys.holder": "whose the very key is that is shown (test_keys)",
    "Mailbox.has_taken": "nothing: whether the very message was taken",
    "Mailbox.told_before": "no words, of the very messages that are sent again by their person",
    "Mailbox.answer_before": "the answer to the very message that is sent again, in the same place",
    "Stats.answered": "of the whole store, for its admins: figures (test_page_seen)",
    "Stats.queue": "of the whole store, for its admins: figures (test_page_seen)",
    "Stats.of_turn": "what models took for one turn: figures",
    "Stats.figures": "of the whole store, for its operator: figures",
    "Stats.used_until": "how many calls of models were booked: a figure",
    "Stats.rows": "of the whole store, for its operator: figures",
    "EditRequests.run": "gives what a Desk method gave",
    "Mailbox.muted": "nothing: it notes in which chats it may not write",
    "Mailbox.may_write": "whether it may write in the very session",
    "Mailbox.mute": "the key of a session, of those that are given",
    "Mailbox.try_again": _OWN,
    "Mailbox.unmute": _OWN,
    "Mailbox.sessions_in": "keys of sessions",
    "EditRequests.knows": "whether a message of this platform's id was ever taken here",
    "EditRequests.amend": "whether the speaker's own message was changed",
    "EditRequests.judge": "gives nothing",
    "OpenQuestions.shown": "a question to this account, by the message that asks it; ids and choices",
    "Identities.context_of": "what confines a speaker's reads",
    "Identities.learns_style": "a setting of an agent",
    "Mailbox.attach_late": "gives nothing",
    "EditRequests.retract": "how many messages a platform has deleted",
    "Housekeeping.erase_left": "counts",
    "Identities.is_there": "whether the bot is in a chat",
    "OpenQuestions.open_to": "ids; to the one who was asked only",
    "OpenQuestions.open_to_any": "ids; to the one who was asked only, with any of their accounts (test_page)",
    "Identities.enter": "the same, within a turn or a request",
    "Identities.context": "ids and settings of the one who speaks, the session's task",
    "Identities.known": "the same of who has spoken there before",
    "Identities.whose": "the same, for whoever runs the machine",
    "EditRequests.answer": "gives what a Desk method gave",
    "OpenQuestions.before": "the same, and whether the bot spoke of a reminder last there",
    "Identities.chosen_agents": "names of agents, which the operator gave",
    "OpenQuestions.at": "ids; to the one who was asked only (test below)",
    "Learner.take_up": "nothing: it goes on with what an earlier run left",
    "Learner.take_over": "nothing: it goes on with sessions that another process held",
    "Learner.flush_all": "nothing: it reads for memory what an agent has not read yet",
    "Learner.finish": "nothing: the same, before the store is closed",
    "Turns.asks_to_forget": "words of the text it is given",
    "Turns.said_last": "the speaker's own words in the session they speak in, to tell their language",
    "Turns.act": "gives what a Desk method gave, or what it gave the first time, in the same turn",
    "Doubts.ask": "a question about two facts that the speaker may change, in their own scope (test_compare)",
    "Edits.decide": "two facts of the asker's own scope that their question has named",
    "OutsideCalls.begin": "the result of the same call in the same turn",
    "OutsideCalls.is_agreed": "whether the speaker's own message agreed to a call",
    "OutsideCalls.asked": "a call that the very person was asked about, as they were shown it",
    "OutsideCalls.agreed": "a call that the speaker's own message agreed to, as they were shown it",
    "OutsideCalls.tools": "what servers that the operator named say of their tools",
    "Stats.health": "times and sizes",
    "Jobs.since": "a time",
    "Jobs.undo": "the rows that it puts back, which `did` shows (tried in test_jobs)",
    "Stats.spending": "tokens, money and times",
    "Privacy.speakers": "ids and settings of people whose ids on a platform are known",
    "Stats.usage": "what models took: figures",
    "Privacy.kept": "counts, own accounts, and looks at what is the asker's (`World.miscounts`)",
    "Privacy.accounts": "the asker's own accounts (test_links)",
    "Privacy.maker": "who made the very code that is given; told only with that code (test_links)",
    "Privacy.is_code": "whether the very code that is given is one, to who may still try (test_links)",
    "Privacy.party": "the account that a question to the asker names",
    "Privacy.act": "gives what a Linking method gave",
    "Linking.take_code": "who made the very code that is given (test_links)",
    "Linking.account": "the asker's own account",
    "Linking.accounts": "accounts of the asker or of who gave them a code (test_links)",
    "Linking.lapsed": "whether a link the asker began was left unanswered",
    "Linking.is_as_asked": "whether a code still stands as its question says",
    "Linking.private_place": "the key of a session, for a notice",
    "Edits.remember": "gives back the rows it wrote, of the speaker and place (used throughout)",
    "Edits.undo": "the speaker's own last turn, with what it taught (tried in test_scope_machine)",
    "Edits.amend": "whether the speaker's own message was changed",
    "Edits.purge_dead": "a count",
    "Edits.retry_dead": "the key of a session",
    "Edits.drop_dead": "whether there was such a row",
    "Stats.by_day": "what models took: figures",
    "Oversight.people": "who talks to the bot on the admin's own channel: ids, names, counts and times",
    "Compaction.now": "the summary of what was said in the very session where it is asked for (test_compaction)",
    "Oversight.forget": "counts",
    "Forgetting.finish": "whether no trace is left",
    "Forgetting.forget": "counts (compared with the tables in test_scope_machine)",
    "Forgetting.forget_as": "the same, for admins",
    "Forgetting.has_erased": "whether a request was carried out",
    "Forgetting.receipt": "counts",
    "Forgetting.scrub": "whether no trace is left",
    "Backups.drop_old": "a count",
    "Backups.list_erased": "a count; the list holds ids",
    "Backups.make_daily": "the same",
    "Backups.make": "the whole store, for the operator's own folder; what comes out of it is read by all ways",
    "Backups.until": "a time",
    "Housekeeping.tidy": "counts, for the operator",
    "Transfer.files_of": "names of files, and only of those that say they are the speaker's",
    "Transfer.remove_files": "a count of the speaker's own files",
    "Transfer.imports": "counts and whose, for the operator",
    "Transfer.known": "people and groups by name, for the operator",
    "Transfer.undo": "counts and whose, for the operator",
    **dict.fromkeys(
        ("Loops.run", "Loops.alone", "Loops.fail", "Loops.worked", "Loops.failures_of", "Loops.wait", "Loops.put_off"),
        "names of loops and numbers of rows, for the operator; no words",
    ),
    "FollowUps.wanted": "ids of accounts, for the clock",
    "FollowUps.due": "for the clock, which asks their own person in private (test_follow_ups)",
    "FollowUps.ask": "the key of the session in which their own person is asked",
    "Reminders.every": "the asker's own reminders (test_reminders)",
    "Reminders.meant": "the asker's own reminder (test_reminders)",
    "Reminders.last_shown": "the asker's own reminder (test_reminders_telegram)",
    "Reminders.is_shown": "whether a message is about a reminder",
    "Reminders.next_due": "for the clock, which shows it to its own person (test_reminders)",
    "Reminders.whose": "the account and the session of that person, for the clock",
    "Reminders.begin_task": "the row of its own person's task, to be answered where they asked for it",
    "Reminders.told_by": "the account of a person of the configuration and their private chat, for the clock",
    "Reminders.begin_standing": "the row of a task for that person alone, in their private chat",
    "Reminders.may_spend": "whether tokens are left",
    "Reminders.fire": "the key of the session in which its own person is shown it",
    "Visits.sign_in": "the session of the very code that is given",
    "Visits.account_of": "the account of the very code that is given",
    "Visits.session": "the session of the very token that is given",
    "Visits.sessions": "the sessions of the account that asks",
    "Visits.join": "the name of the account that signed in",
    "Visits.name": "the name of the account that signed in",
    "Visits.called": "the name of the account that a code is for",
    "Access.grants": "ids of people and groups, for the admins of a channel",
    "Access.kept": "what a channel had kept for itself",
    "Access.state": "whether somebody is let in",
    "Access.take_pairing": "what became of the very code that is given",
    "Mailbox.attached": "what came with the very message that is being answered",
    "Mailbox.dead": "why rows of a channel could not be delivered, for its admins (test_dead)",
    "Mailbox.move": "keys of sessions",
    "Mailbox.release": "the session's own messages, now to be answered there",
    "Mailbox.reword": "the session's own message that was edited",
    "Mailbox.sessions_with_mail": "keys of sessions",
    "Mailbox.set_aside": "the number of a row",
    "Mailbox.shown_placeholder": "a platform's id",
    "Mailbox.unanswered": "messages that wait, each for its own session",
    "Mailbox.withdraw": "ids of rows",
}  # fmt: skip


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Each person has told something of every kind in every place to every agent."""
    made = await World.open(tmp_path / "remora.db", PEOPLE)
    for spot in SPOTS:
        await made.tell(spot, ("sel", "fri", "sty", "eve") if spot.place == "private" else ("sel", "fri", "sty"))
        await made.have_kept(spot)
    for agent in AGENTS:
        await made.say_for_agent(agent)
    yield made
    await made.close()


async def leaks(world: World, agents: Sequence[str] = AGENTS) -> list[str]:
    """Leaks and gaps of every way to read through `agents`. Searching without the index comes last."""
    found = await leaks_into_open_windows(world)
    for name in sorted(set(WAYS) - set(PROGRAMS), key=lambda name: (name == "substring", name)):
        for spot in (spot for spot in SPOTS if spot.agent in agents):
            if name == "words":
                found += await world.miscounts(spot)
            found += await faults(world, name, spot)
    return found


async def leaks_into_open_windows(world: World) -> list[str]:
    """The same for prompts whose snapshot is older than what the others tell."""
    found = []
    for agent in AGENTS:
        spots = [spot for spot in SPOTS if spot.agent == agent]
        for spot in spots:
            found += await faults(world, "look", spot)
        for spot in spots:
            await world.tell(spot, ("fri", "sty"))
        for spot in spots:
            found += await faults(world, "look", spot)
    return found


async def test_each_sees_what_is_theirs_and_nothing_else(world: World) -> None:
    """Promise 2, by every way to read there is."""
    assert await leaks(world) == []


@pytest.mark.campaign
async def test_linked_identities_read_each_others_private_memory_and_nobody_elses(world: World) -> None:
    """A link changes who reads, not whose a row is."""
    await world.link("ada", "ada's phone")
    assert await leaks(world, ["assistant"]) == []


@pytest.mark.campaign
async def test_unlinked_identities_are_strangers_again(world: World) -> None:
    """Whoever hands a phone on must not leave their memory in it: also not what was made of both sides."""
    phone = Spot(person="ada's phone", place="private", agent="assistant")
    await world.link("ada", "ada's phone")
    ours = [c for c in world.canaries if c.kind == "sel" and c.spot.place == "private" and c.spot.agent == "other"]
    mixed = [c for c in ours if c.spot.person in ("ada", "ada's phone")]
    single = next(c for c in world.canaries if c.kind == "fri" and c.spot == phone)
    replaced = next(c for c in mixed if c.spot.person == "ada")
    new = world.canary("sel", phone)
    _, short_id = await world.row(replaced)
    statement = {"about": "self", "key": "likes", "value": new.word, "replaces": short_id, "messages": [1]}
    said = f"I changed my mind. I like {new.word}."
    world.model.answers[said] = {"facts": [statement]}
    await world.service.learner.flush((await world.say(phone, said)).context.session.id, "test")
    replaced.current = False
    await world.reflect(phone, mixed)
    await world.reflect(phone, [single])
    made_of_both, made_of_one = [c for c in world.canaries if c.kind == "ref"]
    await world.unlink("ada's phone")
    assert made_of_both not in world.canaries  # so that whoever still reads it reads what is nobody's
    single.current = False  # set aside, as what it went into stands
    assert made_of_one.current
    assert await leaks(world, ["other"]) == []


async def test_a_question_is_open_to_the_one_who_was_asked_where_they_were_asked(world: World) -> None:
    asked = Spot(person="ada", place="room", agent="assistant")
    await world.do(asked, lambda edits: edits.ask("forget", {"memory": 1}, choices=("yes", "no"), preset="yes"))
    answering = [spot for spot in SPOTS if await world.service.questions.at(*spot.address) is not None]
    assert answering == [Spot(person="ada", place="room", agent=agent) for agent in AGENTS]


#: Public for tests and tools; the gateway calls none of them.
INSIDES = {"database", "agents", "now", "new_id", "style_updates", "mending", "share"}


@pytest.mark.campaign
async def test_programs_read_what_their_person_sees_in_private(world: World) -> None:
    """With a key that somebody made in private, whatever they ask for."""
    spots = [Spot(person=person, place="private", agent=agent) for person in ("ada", "bob") for agent in AGENTS[:1]]
    assert [fault for name in PROGRAMS for spot in spots for fault in await faults(world, name, spot)] == []


async def test_every_way_to_read_is_in_the_matrix(memory: Service) -> None:
    """A new method, or a new façade, must say which it is: one that reads, and is tried, or one that can't."""
    facades = {type(part) for name, part in vars(memory).items() if not name.startswith("_") and name not in INSIDES}
    public = {
        f"{kind.__name__}.{name}"
        for kind in {Service, Edits, Linking, Overseer} | facades
        for name, _ in inspect.getmembers(kind, callable)
        if not name.startswith("_")
    }
    reading = {method for way in WAYS.values() for method in way.methods}
    assert public == reading | set(NOT_READING)
    assert not reading & set(NOT_READING)


async def test_a_statement_of_oneself_leaves_its_group_without_what_others_said(world: World) -> None:
    """The bot's words in a group may hold anybody's; shown as a source in private they would be out."""
    ada = Spot(person="ada", place="club", agent="assistant")
    turn = await world.begin(ada, "What does Bob hide?", on_record=True)
    view = await world.service.turns.look(turn, None, window_tokens=1_000, window_messages=10)
    await world.finish(turn, view, "Bob hides a wombat, and you?")
    world.model.answers["Me too, I am hiding."] = {
        "facts": [{"about": "self", "key": "likes", "value": "hiding", "messages": [2, 3]}]
    }
    await world.service.learner.flush((await world.say(ada, "Me too, I am hiding.")).context.session.id, "test")
    in_private = Spot(person="ada", place="private", agent="assistant")
    listed = await world.service.browse.memories(await world.context(in_private), limit=1_000)
    hiding = next(memory.short_id for memory in listed if memory.value == "hiding")
    shown = await world.do(in_private, lambda edits: edits.show(hiding))
    assert [source.text for source in shown.sources] == ["Me too, I am hiding."]
    assert len((await world.do(ada, lambda edits: edits.show(hiding))).sources) == 2


async def test_what_happened_in_a_group_stays_there(world: World) -> None:
    """An event tells of everybody who took part, whoever spoke last."""
    world.model.answers["Poor Bob."] = {"event": {"value": "Bob lost his job and Ada was sorry", "messages": [1, 3]}}
    await world.say(Spot(person="bob", place="club", agent="assistant"), "I lost my job.")
    turn = await world.say(Spot(person="ada", place="club", agent="assistant"), "Poor Bob.")
    await world.service.learner.flush(turn.context.session.id, "test")
    in_private = await world.context(Spot(person="ada", place="private", agent="assistant"))
    listed = await world.service.browse.memories(in_private, limit=1_000)
    assert not [memory for memory in listed if "lost his job" in memory.value]


async def test_a_wish_stays_with_the_agent_it_was_told_to(world: World) -> None:
    """Another agent may serve the session by the time it is read for memories."""
    spots = [Spot(person="bob", place="private", agent=agent) for agent in AGENTS]
    world.model.answers["Rhyme!"] = {"styles": [{"key": "style", "value": "in rhymes", "messages": [1]}]}
    await world.say(spots[0], "Rhyme!")
    await world.service.learner.flush((await world.context(spots[1])).session.id, "test")
    listed = [await world.service.browse.memories(await world.context(spot), limit=1_000) for spot in spots]
    assert [any(memory.value == "in rhymes" for memory in some) for some in listed] == [True, False]
