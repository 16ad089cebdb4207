"""`remora erase-again`: a server is put back to an older copy, and what was forgotten since is erased once more."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import shutil
import subprocess
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.__main__ import main
from gateway.commands.forget import left_on_server
from gateway.wording.texts import Texts
from memory.errors import StoreBehind
from memory.forgetting import ledger
from memory.forgetting.choose import Selection
from memory.forgetting.forgetting import Receipt
from memory.forgetting.ledger import LedgerEntry
from memory.housekeeping import Keeping
from memory.learn.agents import AgentMemory
from memory.service import Service
from memory.store import sealing
from memory.store.sealing import Seal
from memory.transfer.backups import Retention
from memory.transfer.restore import erase_again, lists_of
from tests.kit import postgres
from tests.kit.canaries import Spot, World
from tests.kit.fakes import Clock, counting_ids, runtime
from tests.kit.forgetting import standing
from tests.kit.patience import SECONDS

ADA = Spot(person="ada", place="private", agent="assistant")
BOB = Spot(person="bob", place="private", agent="assistant")


async def told(world: World) -> tuple[list[str], list[str]]:
    for spot in (ADA, BOB):
        for _ in range(5):
            await world.tell(spot)
            await world.have_kept(spot)
    return tuple([c.word for c in world.canaries if c.spot == spot] for spot in (ADA, BOB))  # type: ignore[return-value]


async def forgets_everything(world: World) -> None:
    context = await world.context(ADA)
    inbox_id = await world.inbox(ADA)
    receipt = await world.service.forgetting.forget(context, inbox_id, None, Selection(what="me"), "words")
    assert receipt is not None
    assert receipt.scrubbed


async def reopened(path: Path, address: str) -> Service:
    return await Service.open(
        path, agents={"assistant": AgentMemory()}, runtime=runtime(Clock(), counting_ids()), database_url=address
    )


@pytest.mark.postgres
async def test_after_a_dump_of_the_server_was_put_back_nothing_forgotten_is_left(tmp_path: Path) -> None:
    from memory.store.postgres.database import PostgresDatabase

    path, dump = tmp_path / "remora.db", tmp_path / "dump"
    address = postgres.url(path)

    async def engine(store: Path) -> PostgresDatabase:
        return await PostgresDatabase.open(address, store, now=1)

    world = await World.open(path, ("ada", "bob"), engine=engine)
    ada, bob = await told(world)
    # The commands of docs/scale.md, by an ordinary role: policies hold it, and the extension is not its own.
    run("pg_dump", "-Fc", "--enable-row-security", "-n", "remora", "-f", dump, "-d", address)
    await forgets_everything(world)
    await world.close()
    assert standing(postgres.files(path), ada) == []

    run("pg_restore", "--clean", "--if-exists", "-d", address, dump)
    assert standing(postgres.files(path), ada) == ada
    with pytest.raises(StoreBehind, match="remora erase-again"):
        await reopened(path, address)

    done = await erase_again(path, lists_of(path), now=world.clock(), database_url=address)
    assert (done.listed, done.again.erasings, done.bad_lines, done.lost_key) == (1, 1, 0, False)
    assert standing(postgres.files(path), ada) == []
    assert set(standing(postgres.files(path), bob)) == set(bob)
    again = await erase_again(path, lists_of(path), now=world.clock(), database_url=address)
    assert (again.again.erasings, again.again.messages, again.again.memories) == (0, 0, 0)
    await (await reopened(path, address)).close(seconds=SECONDS)


@pytest.mark.postgres
async def test_a_receipt_names_the_day_on_which_the_servers_copies_are_gone(tmp_path: Path) -> None:
    path, clock = tmp_path / "remora.db", Clock()
    for days, sentence in (
        (0, "hold it until the operator's server recycles them"),
        (30, "hold it until 21 Dec 2026 at the latest"),
    ):
        retention = Retention(folder=tmp_path / "backups", server_days=days)
        service = await Service.open(
            path,
            agents={"assistant": AgentMemory()},
            runtime=runtime(clock, counting_ids()),
            keeping=Keeping(retention=retention),
            database_url=postgres.url(path),
        )
        until = await service.backups.until()
        receipt = Receipt(
            what="all", memories=1, derived=0, restored=0, messages=1, replies=1, files=0, keep_source=0, words=True,
            scrubbed=True, on_server=True, backups_until=until,
        )  # fmt: skip
        assert sentence in left_on_server(Texts("en", "UTC"), receipt)
        assert (service.backups.on_server, service.backups.server_days) == (True, days)
        await service.close(seconds=SECONDS)


async def put_back(tmp_path: Path) -> tuple[Path, list[str], list[str]]:
    """Returns a store of a file that an older copy of it has replaced, with the words of each."""
    path = tmp_path / "remora.db"

    async def engine(store: Path) -> object:
        from memory.store.sqlite.database import SqliteDatabase

        return await SqliteDatabase.open(store, now=1)

    world = await World.open(path, ("ada", "bob"), engine=engine)  # type: ignore[arg-type]
    ada, bob = await told(world)
    await world.close()
    copy = tmp_path / "copy.db"
    shutil.copy2(path, copy)
    await world.start()
    await forgets_everything(world)
    await world.close()
    copy.replace(path)
    return path, ada, bob


async def test_a_file_that_an_older_copy_has_replaced_is_not_served_before(tmp_path: Path) -> None:
    """Its list lies beside it, so the start needs nobody to ask for it."""
    path, ada, bob = await put_back(tmp_path)
    service = await reopened(path, "")
    assert await service.forgetting.finish()
    await service.close(seconds=SECONDS)
    files = [one for one in tmp_path.iterdir() if one.name.startswith(path.name) and one.is_file()]
    assert standing(files, ada) == []
    assert set(standing(files, bob)) == set(bob)


async def test_lists_of_other_machines_are_taken_with_their_keys(tmp_path: Path) -> None:
    path, ada, _ = await put_back(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    for ending in (".erased", ".key"):
        shutil.move(path.with_name(path.name + ending), other)
    assert lists_of(path) == []
    lists = lists_of(path, [other / "remora.db.erased"])
    done = await erase_again(path, lists, now=Clock()())
    assert (done.listed, done.again.erasings, done.lost_key) == (1, 1, False)
    assert standing([path], ada) == []
    # It is on this machine's list, too, in case that this store is put back.
    assert len(ledger.read(ledger.path_of(path))[0]) == 1
    assert sealing.keys_in(sealing.path_of(path)) == sealing.keys_in(other / "remora.db.key")


async def test_the_command_says_what_is_missing_and_what_came_of_it(tmp_path: Path) -> None:
    path, ada, _ = await put_back(tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text(f"data_dir: {tmp_path}\n")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "assistant.yaml").write_text(
        "name: assistant\nmodels: [{provider: openai, model: m, base_url: 'http://127.0.0.1:9/v1'}]\n"
    )

    def command() -> tuple[int, str]:
        result = CliRunner().invoke(main, ["erase-again", "--config", str(config)])
        return result.exit_code, result.output

    hidden = tmp_path / "hidden"
    ledger.path_of(path).rename(hidden)
    code, output = await asyncio.to_thread(command)
    assert (code, "There is no list" in output) == (66, True), output
    hidden.rename(ledger.path_of(path))
    sealing.path_of(path).unlink()
    code, output = await asyncio.to_thread(command)
    assert (code, "1 of 1 requests" in output, "lacks the key" in output) == (0, True, True), output
    # Another database, in which nobody has forgotten anything, keeps the command from none.
    (tmp_path / "agents" / "another.yaml").write_text(
        "name: another\ndatabase: another.db\nmodels: [{provider: openai, model: m, base_url: 'http://127.0.0.1:9/v1'}]\n"
    )
    shutil.copy(path, tmp_path / "another.db")
    code, output = await asyncio.to_thread(command)
    assert (code, "remora.db: 0 of 1 requests" in output, "another.db.erased" in output) == (66, True, True), output
    assert standing([path], ada) == []


def write_much(folder: Path, begin: Barrier, number: int) -> None:
    """Seals and lists, as a process of the bot does that shares its folder with another."""
    begin.wait()
    seal = Seal(folder / "remora.db.key")
    for n in range(100):
        name, _ = seal.sealed(b"x")
        told = json.dumps({"how": "words", "messages": [1_000 * number + n], "memories": []})
        entry = LedgerEntry(erased_at=n, what=told, hashes=((1, "00", name),), hash_key="00")
        ledger.append(folder / "remora.db.erased", [entry])


def test_processes_on_one_folder_lose_neither_a_key_nor_a_line(tmp_path: Path) -> None:
    early = Seal(tmp_path / "remora.db.key")
    spawning = multiprocessing.get_context("spawn")
    begin = spawning.Barrier(3)
    writers = [spawning.Process(target=write_much, args=(tmp_path, begin, number)) for number in range(3)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert [one.exitcode for one in writers] == [0, 0, 0]
    entries, bad = ledger.read(tmp_path / "remora.db.erased")
    assert (len(entries), bad) == (300, 0)
    (key,) = sealing.keys_in(tmp_path / "remora.db.key")
    assert len({name for entry in entries for _, _, name in entry.hashes}) == 1
    # A process that was there before the key was made compares with it, too.
    assert early.all_of(b"x") == Seal(tmp_path / "remora.db.key").all_of(b"x") != []
    assert key


def run(program: str, *arguments: str | Path) -> None:
    subprocess.run([postgres.binaries() / program, *arguments], check=True, capture_output=True, cwd="/")
