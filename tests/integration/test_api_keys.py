"""Keys of a person's programs: made in a private chat, shown once, known again by their hash, gone when revoked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.commands.keys import asked_for
from gateway.pipeline.policy import Rules
from memory.forgetting.choose import Selection
from memory.store import people
from tests.kit.pipeline import World, pipeline

RULES = {"telegram": Rules(allow=frozenset({"7", "8"}))}
URL = "http://127.0.0.1:8765"


async def made(world: World, label: str, *, author: str = "7") -> str:
    (told,) = await world.say(f"/keys make {label}", author=author)
    found = re.search(r"^rk_[\w-]{43}$", told, re.MULTILINE)
    assert found is not None and f"{URL}/v1" in told
    return found[0]


async def test_a_key_is_shown_once_and_only_its_hash_is_kept(tmp_path: Path) -> None:
    """Whoever reads the database can't use it; its person sees what it may and when it was used."""
    async with pipeline(tmp_path, rules=RULES, api=URL) as world:
        secret = await made(world, "read,write Claude   Code")
        (listed,) = await world.say("/keys", author="7")
        assert "1. Claude Code: read memory, change memory; never used" in listed and secret not in listed
        holder = await world.memory.keys.holder(secret)
        assert holder is not None and (holder.account.user_id, holder.key.scopes) == ("7", ("read", "write"))
        for shown in ("/keys", "/usage"):
            (listed,) = await world.say(shown, author="7")
            assert "last used" in listed
        assert "with a key: Claude Code" in (await world.say("/privacy", author="7"))[0]
        assert await world.memory.keys.holder(secret[:-1] + "_") is None
        stored = [
            str(value)
            for table in ("api_keys", "outbox", "inbox", "messages")
            for row in await world.rows(f"select * from {table}")
            for value in row
        ]
        assert not any(secret in value for value in stored)


async def test_the_use_of_a_key_is_written_down_once_a_minute(tmp_path: Path) -> None:
    """Reading memory must not cost a write each time."""
    async with pipeline(tmp_path, rules=RULES, api=URL) as world:
        secret = await made(world, "laptop")
        seen = []
        for minutes in (0, 0, 2):
            world.clock.move(minutes=minutes)
            assert await world.memory.keys.holder(secret) is not None
            seen += await world.rows("select used_at from api_keys")
        assert seen[0] == seen[1] != seen[2]


async def test_nobody_sees_or_revokes_the_key_of_another(tmp_path: Path) -> None:
    """A number that is not yours is answered like one that does not exist."""
    async with pipeline(tmp_path, rules=RULES, api=URL) as world:
        secret = await made(world, "laptop")
        assert "You have no keys" in (await world.say("/keys", author="8"))[0]
        assert await world.say("/keys revoke 1", author="8") == await world.say("/keys revoke 9", author="8")
        assert await world.memory.keys.holder(secret) is not None
        assert await world.say("/keys revoke 1", author="7") == [
            "The key is revoked. Programs that use it get no more answers."
        ]
        assert await world.memory.keys.holder(secret) is None


async def test_a_key_counts_only_as_long_as_its_accounts_are_one_person(tmp_path: Path) -> None:
    """Unlinking the account of one's programs shuts the programs out."""
    async with pipeline(tmp_path, rules=RULES, api=URL) as world:
        secret = await made(world, "laptop")
        assert "the API" in (await world.say("/privacy", author="7"))[0]
        ((program,),) = await world.rows("select id from identities where platform = 'api'")
        await world.memory.database.write(lambda tx: people.unlink(tx, program))
        assert await world.memory.keys.holder(secret) is None
        assert await world.memory.keys.holder(await made(world, "again")) is not None


async def test_programs_leave_with_the_account_that_they_are_for(tmp_path: Path) -> None:
    """A person who takes an account out keeps nothing of its programs, and its next key brings nobody back together."""
    async with pipeline(tmp_path, rules=RULES, api=URL) as world:
        await world.say("/remember the vault opens with Quaxolia", author="7")
        secret = await made(world, "laptop", author="8")
        ids = [(await world.rows("select id from identities where user_id = ?", user))[0][0] for user in ("7", "8")]
        await world.memory.database.write(lambda tx: people.link(tx, *ids))
        assert "Quaxolia" in (await world.say("/memory", author="8"))[0]
        await world.say("/unlink", author="8")
        await world.say("yes", author="8")
        assert await world.rows("select count(distinct person_id) from identities") == [(2,)]
        holder = await world.memory.keys.holder(secret)
        assert holder is not None and holder.account.user_id == "8"
        await made(world, "another", author="8")
        assert "Quaxolia" not in (await world.say("/memory", author="8"))[0]
        assert "the API" not in (await world.say("/privacy", author="7"))[0]


async def test_a_program_left_with_others_joins_its_person_alone(tmp_path: Path) -> None:
    """As an account was separated before its programs left with it."""
    async with pipeline(tmp_path, rules=RULES, api=URL) as world:
        await world.say("/remember the vault opens with Quaxolia", author="7")
        await made(world, "laptop", author="8")
        ids = [(await world.rows("select id from identities where user_id = ?", user))[0][0] for user in ("7", "8")]
        await world.memory.database.write(lambda tx: people.link(tx, *ids))
        await world.memory.database.write(lambda tx: people.unlink(tx, ids[1]))
        await made(world, "another", author="8")
        assert "Quaxolia" not in (await world.say("/memory", author="8"))[0]


async def test_keys_go_with_their_person(tmp_path: Path) -> None:
    """Erasing all of a person's data ends their keys, and leaves those of others."""
    async with pipeline(tmp_path, rules=RULES, api=URL) as world:
        hers, his = await made(world, "hers"), await made(world, "his", author="8")
        context = await world.memory.identities.whose("telegram", "7", private=True)
        assert context is not None
        await world.say("/privacy delete", author="7")
        await world.say("yes", author="7")
        assert await world.memory.keys.holder(hers) is None and await world.memory.keys.holder(his) is not None
        assert await world.rows("select label from api_keys") == [("his",)]
        preview = await world.memory.forgetting.preview_of(context, Selection(what="me"), limit=0)
        assert preview.is_empty


async def test_keys_are_made_in_private_and_only_where_they_can_be_used(tmp_path: Path) -> None:
    """In a group others would read the key; while the API is off it would open nothing."""
    rules = {"telegram": Rules(allow=frozenset({"7"}), groups=frozenset({"-5"}))}
    async with pipeline(tmp_path, rules=rules) as world:
        assert "only for you" in (await world.say("/keys make laptop", author="7", chat="-5"))[0]
        assert "The API is off" in (await world.say("/keys make laptop", author="7"))[0]
        assert "api: {enabled: true}" in (await world.say("/keys", author="7"))[0]
        assert await world.rows("select * from api_keys") == []


async def test_a_person_has_so_many_keys_at_most(tmp_path: Path) -> None:
    """Whoever has a chat open for a minute can't make keys without end."""
    async with pipeline(tmp_path, rules=RULES, api=URL) as world:
        context = await world.memory.identities.whose("telegram", "7", private=True)
        assert context is None
        await world.say("hello", author="7")
        context = await world.memory.identities.whose("telegram", "7", private=True)
        assert context is not None
        for _ in range(20):
            assert await world.memory.keys.make(context, "one more", ("chat",)) is not None
        assert "20 keys already" in (await world.say("/keys make laptop", author="7"))[0]


@pytest.mark.parametrize(
    ("typed", "label", "scopes"),
    [
        ("Open WebUI", "Open WebUI", ("chat", "read", "write")),
        ("write,read Claude", "Claude", ("read", "write")),
        ("chat", "chat", ("chat", "read", "write")),
        ("chatty box", "chatty box", ("chat", "read", "write")),
    ],
)
def test_what_a_key_may_is_named_before_its_label(typed: str, label: str, scopes: tuple[str, ...]) -> None:
    """A label that begins like a permission is no permission."""
    assert asked_for(typed) == (label, scopes)
