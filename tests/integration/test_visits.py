"""Sign-in to the page: codes that work once, sessions that end, and an account that is one person with another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.chat.identities import Where, Who
from memory.service import Service
from memory.store import people
from tests.kit.fakes import Clock
from tests.kit.stores import opened, rows

ADA = {"channel": "telegram", "platform": "telegram", "user_id": "7"}
PAGE = {"platform": "telegram", "user_id": "7", "page": "web", "page_id": "telegram.7"}


@pytest.fixture
async def memory(tmp_path: Path, clock: Clock) -> AsyncIterator[Service]:
    async with opened(tmp_path / "remora.db", clock) as service:
        yield service


async def signed_in(memory: Service, code: str = "code", token: str = "token") -> None:
    await memory.visits.open_code(code, agent="assistant", **ADA)
    assert await memory.visits.sign_in(code, token) is not None


async def test_a_code_is_for_one_session_and_ten_minutes(memory: Service, clock: Clock) -> None:
    visits = memory.visits
    until = await visits.open_code("first", agent="assistant", **ADA)
    assert 590_000 < until - clock.at <= 600_000
    await visits.open_code("second", agent="assistant", **ADA)
    assert await visits.sign_in("first", "t") is None, "a new link replaces the earlier one"
    assert await visits.account_of("second") == ("telegram", "telegram", "7")
    session = await visits.sign_in("second", "t")
    assert session is not None and (session.user_id, session.agent) == ("7", "assistant")
    assert await visits.sign_in("second", "t2") is None and await visits.account_of("second") is None
    await visits.open_code("third", agent="assistant", **ADA)
    clock.move(minutes=11)
    assert await visits.account_of("third") is None and await visits.sign_in("third", "t3") is None


async def test_neither_code_nor_token_is_stored(memory: Service) -> None:
    await signed_in(memory, "a-code-of-many-letters", "a-token-of-many-letters")
    await memory.visits.open_code("another-code-of-letters", agent="assistant", **ADA)
    held = str(await rows(memory, "select * from web_codes")) + str(await rows(memory, "select * from web_sessions"))
    assert "telegram" in held and "letters" not in held


async def test_a_session_ends_with_disuse_or_on_request(memory: Service, clock: Clock) -> None:
    visits = memory.visits
    await signed_in(memory)
    for _ in range(3):
        clock.move(days=13)
        session = await visits.session("token")
        assert session is not None
        assert not visits.is_noted(session)
        await visits.visited(session)
    clock.move(days=15)
    assert await visits.session("token") is None

    await signed_in(memory, "c2", "t2")
    await signed_in(memory, "c3", "t3")
    await memory.visits.open_code("c4", agent="assistant", **ADA)
    second, third = await visits.session("t2"), await visits.session("t3")
    assert second is not None and third is not None
    assert [one.id for one in await visits.sessions("telegram", "7")] == [third.id, second.id]
    await visits.sign_out(third.id)
    assert await visits.session("t3") is None and await visits.session("t2") is not None
    assert await visits.sign_out_everywhere("telegram", "7") == 1
    assert await visits.session("t2") is None and await visits.sign_in("c4", "t4") is None
    assert await visits.sessions("telegram", "7") == []


async def test_an_account_on_the_page_is_the_person_who_signed_in(memory: Service) -> None:
    """Also if a namesake is there, and only as long as they are linked."""
    place = Where(
        session_key="telegram:7:-", platform="telegram", chat="7", chat_kind="private", thread=None, agent="assistant"
    )
    ada = await memory.identities.context(place, Who(platform="telegram", user_id="7", name="Ada"))
    assert await memory.visits.name(**PAGE) is None
    assert await memory.visits.join(**PAGE) == "Ada"
    assert await memory.visits.name(**PAGE) == "Ada"
    accounts = await memory.privacy.accounts(ada)
    assert [(one.platform, one.user_id) for one in accounts] == [("telegram", "7"), ("web", "telegram.7")]
    assert await memory.visits.name(**{**PAGE, "user_id": "8"}) is None
    [(web,)] = await rows(memory, "select id from identities where platform = 'web'")
    await memory.database.write(lambda tx: people.unlink(tx, web))
    assert await memory.visits.name(**PAGE) is None


async def test_who_signs_in_again_is_joined_with_nobody_from_before(memory: Service) -> None:
    """An account that was taken out left its page with the others: it leaves them now."""
    ada, bob = [
        await memory.identities.context(
            Where(
                session_key=f"telegram:{user}:-", platform="telegram", chat=user, chat_kind="private", thread=None,
                agent="assistant",
            ),
            Who(platform="telegram", user_id=user, name=user),
        )
        for user in ("7", "8")
    ]  # fmt: skip
    await memory.visits.join(**PAGE)
    await memory.database.write(lambda tx: people.link(tx, bob.speaker.id, ada.speaker.id))
    await memory.database.write(lambda tx: people.unlink(tx, ada.speaker.id))
    await memory.privacy.learn_from(bob, False)
    await memory.visits.join(**PAGE)
    learning = "select p.learning from people p join identities i on i.person_id = p.id where i.user_id = '7'"
    assert await rows(memory, learning) == [(1,)]
    assert [one.user_id for one in await memory.privacy.accounts(ada)] == ["7", "telegram.7"]
    assert [one.user_id for one in await memory.privacy.accounts(bob)] == ["8"]
