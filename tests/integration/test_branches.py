"""Conversations that people change in a front end: they branch, and nothing is said twice in anybody's name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kit.doors import House, content, house
from tests.kit.fakes import ScriptedModel

CHAT = {"X-OpenWebUI-Chat-Id": "c1"}


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, model=ScriptedModel(*(f"Answer {n}." for n in range(1, 9)))) as home:
        yield home


async def sessions(home: House) -> list[list[str]]:
    rows = await home.world.rows(
        "select s.key, m.text from sessions s join messages m on m.session_id = s.id"
        " where s.key like 'api:%' and m.erased_at is null and m.text <> '' order by s.id, m.id"
    )
    found: dict[object, list[str]] = {}
    for key, text in rows:
        found.setdefault(key, []).append(str(text))
    return list(found.values())


def shown(home: House) -> list[str]:
    """The conversation in the last request of the model, each message by its first line."""
    model = home.world.agents["assistant"].provider
    assert isinstance(model, ScriptedModel)
    return [one.content.splitlines()[-1] for one in model.requests[-1].messages if one.role == "assistant"] + [
        line for one in model.requests[-1].messages if one.role == "user" for line in one.content.splitlines()
    ]


async def test_a_changed_message_begins_a_branch_that_goes_on_by_itself(home: House) -> None:
    """The branch has what was before it, the first conversation has nothing of the branch, and both go on."""
    key = await home.key()
    assert content(await home.chat(key, "I am Ada.", headers=CHAT)) == "Answer 1."
    begun = ("I am Ada.", "Answer 1.")
    assert content(await home.chat(key, *begun, "I like tea.", headers=CHAT)) == "Answer 2."
    changed = (*begun, "I like cocoa.")
    assert content(await home.chat(key, *changed, headers=CHAT)) == "Answer 3."
    read = shown(home)
    assert {"I am Ada.", "Answer 1.", "I like cocoa."} <= {*read} and "I like tea." not in read
    assert content(await home.chat(key, *changed, "Answer 3.", "With milk.", headers=CHAT)) == "Answer 4."
    read = shown(home)
    assert [read.count(line) for line in ("I am Ada.", "Answer 1.", "I like cocoa.", "Answer 3.")] == [1, 1, 1, 1]
    assert content(await home.chat(key, *begun, "I like tea.", "Answer 2.", "Green.", headers=CHAT)) == "Answer 5."
    assert "I like tea." in shown(home) and "I like cocoa." not in shown(home)
    assert await sessions(home) == [
        ["I am Ada.", "Answer 1.", "I like tea.", "Answer 2.", "Green.", "Answer 5."],
        ["I like cocoa.", "Answer 3.", "With milk.", "Answer 4."],
    ]
    assert await home.world.rows("select * from inbox where payload like '%Answer 1.%'") == []


async def test_an_older_answer_made_anew_is_a_branch_and_teaches_nothing_new(home: House) -> None:
    """The words were said once; what came after them stays where it is."""
    key = await home.key()
    first, second = ("My cat is called Minka.",), ("My cat is called Minka.", "Answer 1.", "And?")
    await home.chat(key, *first, headers=CHAT)
    await home.chat(key, *second, headers=CHAT)
    await home.chat(key, *second, "Answer 2.", "More.", headers=CHAT)
    assert content(await home.chat(key, *second, headers=CHAT)) == "Answer 4."
    assert await sessions(home) == [[*second, "Answer 2.", "More.", "Answer 3."], ["And?", "Answer 4."]]
    assert await home.world.rows("select learn from messages where text = 'And?' order by id") == [(1,), (0,)]


async def test_in_a_branch_too_a_repetition_is_told_once_and_the_last_answer_is_made_anew(home: House) -> None:
    key = await home.key()
    await home.chat(key, "One.", headers=CHAT)
    await home.chat(key, "One.", "Answer 1.", "Two.", headers=CHAT)
    changed = ("One.", "Answer 1.", "Three.")
    assert content(await home.chat(key, *changed, headers=CHAT)) == "Answer 3."
    repeated = {**CHAT, "X-Stainless-Retry-Count": "1"}
    assert content(await home.chat(key, *changed, headers=repeated)) == "Answer 3."
    assert content(await home.chat(key, *changed, headers=CHAT)) == "Answer 4."
    assert {"One.", "Answer 1.", "Three."} <= {*shown(home)}
    assert (await sessions(home))[1] == ["Three.", "Answer 4."]


async def test_commands_and_wishes_of_the_program_do_not_branch(home: House) -> None:
    """A command has no turn, and another system text is no other conversation."""
    key = await home.key()
    await home.chat(key, "One.", headers=CHAT)
    told = content(await home.chat(key, "One.", "Answer 1.", "/keys", headers=CHAT))
    said = ("One.", "Answer 1.", "/keys", told, "Two.")
    roles = ("user", "assistant")
    messages = [{"role": "system", "content": "Be short."}]
    messages += [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
    await home.ask("POST", "/v1/chat/completions", key, {"model": "assistant", "messages": messages}, CHAT)
    assert await sessions(home) == [["One.", "Answer 1.", "Two.", "Answer 2."]]


async def test_chats_of_a_program_that_names_none_are_kept_apart_by_their_words(home: House) -> None:
    """Each goes on with its own history once it has one."""
    key = await home.key()
    await home.chat(key, "About tea.")
    await home.chat(key, "About bikes.")
    await home.chat(key, "About tea.", "Answer 1.", "Green?")
    assert "Answer 1." in shown(home) and "About bikes." not in shown(home)
    await home.chat(key, "About bikes.", "Answer 2.", "Red?")
    assert (await sessions(home))[1] == ["Green?", "Answer 3."]


async def test_a_branch_goes_on_by_the_id_of_its_answer(home: House) -> None:
    """In the other form of the API, whose history is a list of items."""
    key = await home.key()

    async def ask(items: object, **more: object) -> str:
        answer = await home.ask("POST", "/v1/responses", key, {"model": "assistant", "input": items, **more})
        return str(answer.json()["id"])

    before = [{"role": "user", "content": "One."}, {"role": "assistant", "content": "Answer 1."}]
    await ask(before[:1])
    await ask([*before, {"role": "user", "content": "Two."}])
    branch = await ask([*before, {"role": "user", "content": "Three."}])
    await ask("Four.", previous_response_id=branch)
    assert (await sessions(home))[1][::2] == ["Three.", "Four."]


@pytest.mark.parametrize("typed", ["/forget Quaxolia", "/forget all"])
@pytest.mark.parametrize("form", ["chat", "response"])
async def test_a_forget_in_a_branch_leaves_no_byte_in_either_conversation(home: House, typed: str, form: str) -> None:
    """Nor of what came beside the words, nor of the program's own account of what was said before."""
    key, headers = await home.key(), {**CHAT, "X-Remora-Task": ""}
    documents = (
        "### Task:\nRespond to the user query using the provided context.\n<context>\nThe Quaxolia is 71 cm high.\n"
        "</context>\nWhat of Quaxolia?"
    )

    async def ask(*said: str) -> str:
        roles = ("user", "assistant")
        items = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
        path, name = ("chat/completions", "messages") if form == "chat" else ("responses", "input")
        answer = await home.ask("POST", f"/v1/{path}", key, {"model": "assistant", name: items}, headers)
        assert answer.status_code == 200, answer.text
        return answer.text

    await ask("The vault opens with Quaxolia.")
    before = ("The vault opens with Quaxolia.", "Answer 1.")
    await ask(*before, "One.")
    await ask(*before, documents)
    assert len(await sessions(home)) == 2
    assert "Quaxolia" in repr(await home.world.rows("select text from attachments"))
    await ask(*before, "What of Quaxolia?", "Answer 3.", typed)
    await ask(*before, "What of Quaxolia?", "Answer 3.", typed, "Sure?", "yes")
    folder = home.world.memory.database.path.parent
    assert not [file for file in folder.rglob("*") if file.is_file() and b"Quaxolia" in file.read_bytes()]


async def test_a_secret_in_the_history_of_a_branch_is_masked(home: House) -> None:
    key = await home.key()
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    await home.chat(key, f"My key is {secret}", headers=CHAT)
    said = (f"My key is {secret}", "Answer 1.")
    await home.chat(key, *said, "One.", headers=CHAT)
    await home.chat(key, *said, "Two.", headers=CHAT)
    assert (await sessions(home))[1] == ["Two.", "Answer 3."]
    assert not any(secret in line for line in shown(home))


async def test_words_that_were_asked_before_are_asked_anew_by_a_retry_after_a_refusal(tmp_path: Path) -> None:
    """A client that was told to wait says so of its next try; the answer of long before would be false by now."""
    retried = {"x-stainless-retry-count": "1"}
    async with house(tmp_path, model=ScriptedModel("Lisbon.", "Noted.", "Braga.")) as home:
        key = await home.key()
        assert "Lisbon." in (await home.chat(key, "Where do I live?")).text
        assert "Lisbon." in (await home.chat(key, "Where do I live?", headers=retried)).text
        await home.chat(key, "I moved to Braga")
        assert "Braga." in (await home.chat(key, "Where do I live?", headers=retried)).text
