"""/memory runs, run, undo and preview, and what /memory show tells of them: through the whole pipeline."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.pipeline.policy import Rules
from memory.store.database import Transaction
from tests.kit.fakes import DAY, NOON
from tests.kit.pipeline import World, pipeline

ADA, BOB, ROOT, CLUB = "7", "8", "9", "-1001"
_ID = re.compile(r"m_[a-z0-9]+")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    rules = Rules(allow=frozenset({ADA, BOB}), admins=frozenset({ROOT}), groups=frozenset({CLUB}))
    async with pipeline(tmp_path, rules={"telegram": rules}) as made:
        yield made


async def faded(world: World, text: str, *, author: str = ADA, **more: Any) -> str:
    """The id of something that was kept so long ago that the next night sets it aside."""
    found = _ID.search("\n".join(await world.say(f"/remember {text}", author=author, **more)))
    assert found is not None

    def age(tx: Transaction) -> None:
        tx.run(
            "update memories set category = 'debug', last_reinforced_at = ? where short_id = ?",
            (NOON - 400 * DAY, found[0]),
        )

    await world.memory.database.write(age)
    return found[0]


async def night(world: World) -> int:
    """Have what is faded set aside; the number of the run."""
    run = await world.memory.jobs.run("assistant", "decay", "2026-11-21")
    assert run is not None and run.state == "done"
    return run.id


async def said(world: World, text: str, *, author: str = ADA, **more: Any) -> str:
    return "\n".join(await world.say(text, author=author, **more))


async def test_what_the_night_did_is_shown_and_taken_back(world: World) -> None:
    """From the list to one run to its rows, and back; the second time there is nothing to take back."""
    assert await said(world, "/memory runs") == "No nightly job has changed anything I remember here."
    short_id = await faded(world, "the build is red")
    number = await night(world)
    assert await said(world, "/memory runs") == (
        "What the nightly jobs did with my memories here, newest first:\n"
        f"  {number}  21 Nov 2026: archive faded memories: archived 1\n"
        f"/memory run {number} shows the details, and /memory undo {number} undoes them."
    )
    shown = await said(world, f"/memory run {number}")
    assert shown.startswith(f"Run {number}, 21 Nov 2026: archive faded memories\n− ")
    assert "the build is red" in shown and shown.endswith(f"({short_id}), archived")
    assert "archived because it faded" in await said(world, f"/memory show {short_id}")
    undone = await said(world, f"/memory undo {number}")
    assert "Memories restored: 1;" in undone and f"({short_id})" in undone
    assert "archived" not in await said(world, f"/memory show {short_id}")
    assert "(undone)" in await said(world, "/memory runs")
    assert await said(world, f"/memory undo {number}") == f"Run {number} has already been undone."


async def test_a_preview_costs_nothing_without_a_model_and_changes_nothing(world: World) -> None:
    short_id = await faded(world, "the build is red")
    shown = await said(world, "/memory preview decay")
    assert f"({short_id}), archived" in shown and shown.endswith("This preview used no model.")
    assert "archived" not in await said(world, f"/memory show {short_id}")
    assert await said(world, "/memory runs") == "No nightly job has changed anything I remember here."
    assert "decay (archive faded memories)" in await said(world, "/memory preview")
    await said(world, f"/memory pin {short_id}")
    assert "would not change any" in await said(world, "/memory preview decay")


async def test_many_changes_are_shown_page_by_page(world: World) -> None:
    """Both what a night would do and what it did; a page behind the last is the last."""
    ids = {await faded(world, f"shelf {n} holds jar {n}") for n in range(23)}
    for has_run in (False, True):
        typed = f"/memory run {await night(world)}" if has_run else "/memory preview decay"
        first, second, last = [await said(world, f"{typed} {page}".rstrip()) for page in ("", "2", "9")]
        assert f"More: {typed} 2" in first and "More:" not in second and last == second
        pages = [set(re.findall(r"\((m_\w+)\)", page)) for page in (first, second)]
        assert [len(page) for page in pages] == [20, 3] and pages[0] | pages[1] == ids


@pytest.mark.parametrize("typed", ["999", "abc", "99999999999999999999999", "-1", "1; drop table memories"])
async def test_a_run_that_is_not_ones_own_is_answered_like_none(world: World, typed: str) -> None:
    await faded(world, "the build is red")
    number = await night(world)
    for action in ("run", "undo"):
        refused = await said(world, f"/memory {action} {typed}")
        assert refused == (await said(world, f"/memory {action} {number}", author=BOB)).replace(str(number), typed)
        assert refused.startswith(f"No run {typed} has changed anything")


async def test_in_a_group_everybody_looks_and_an_admin_takes_back(world: World) -> None:
    """It is everybody's memory; in private none of it is shown."""
    short_id = await faded(world, "the build is red", chat=CLUB, addressed=True)
    number = await night(world)
    for author in (ADA, BOB, ROOT):
        assert short_id in await said(world, f"/memory run {number}", author=author, chat=CLUB, addressed=True)
        assert "No run" in await said(world, f"/memory run {number}", author=author)
    for command in (f"/memory undo {number}", "/memory preview decay"):
        assert "only an admin" in await said(world, command, author=BOB, chat=CLUB, addressed=True)
    undone = await said(world, f"/memory undo {number}", author=ROOT, chat=CLUB, addressed=True)
    assert f"({short_id})" in undone and undone.startswith("Undone")


async def test_in_chinese_too(world: World) -> None:
    await said(world, "/profile language zh")
    await faded(world, "the build is red")
    number = await night(world)
    for command in ("/memory runs", f"/memory run {number}", f"/memory undo {number}", "/memory preview decay"):
        shown = re.sub(r"/memory \w+|the build is red|Note that", "", await said(world, command))
        assert not re.search(r"[a-z]{3,} [a-z]{3,}", shown), shown
