"""The work of `remora backup`, `restore` and `erase-again`: it chooses the files and reports the outcome.

Invariants: a backup touches nothing but the folder of backups, and runs beside a bot or without one; a backup is
restored only into the store that it was made of, unless the operator names another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from gateway.cli.start import counted
from gateway.ops.databases import NoSuchStore, Stores
from memory.store.files import Progress
from memory.transfer import backups
from memory.transfer import restore as restoring
from memory.transfer.backup_copy import Backup
from memory.transfer.restore import Restored, Stage

#: The sentences that report the stages of a restore.
_STAGES: Final[dict[Stage, str]] = {
    "copying": "Copying the backup and checking it ...",
    "preparing": "Preparing the copy ...",
    "erasing": "Erasing what was forgotten since the backup ...",
    "keeping": "Keeping a copy of the current database ...",
    "replacing": "Replacing the database with the backup ...",
}
#: The warning about a key file that lacks a key.
_LOST_KEY: Final = (
    "{store}.key lacks the key that protects the record of what people had forgotten. Until you restore its line from "
    "your copy, nothing they said before that is learned or imported."
)


async def make(
    stores: Stores,
    *,
    name: str | None,
    to: Path | None,
    now: Callable[[], int],
    say: Callable[[str], None],
    progress: Progress,
) -> list[Backup]:
    """Backs up the stores; without `to`, drops old backups. Raises `NoSuchStore` or `memory.errors.StorageError`."""
    chosen = stores.chosen(name)
    if to is not None and to.suffix == ".db" and len(chosen) > 1:
        raise NoSuchStore("Several databases can't go into one file. Choose one with --store, or give --to a folder.")
    made = []
    for store in chosen:
        one = await backups.copy(store, to or stores.retention.folder, now=now(), progress=progress)
        made.append(one)
        say(
            f"{store.name}: {one.path}, {one.size / 1e6:.1f} MB, "
            f"{counted(people=one.people, messages=one.messages, memories=one.memories)}. Checked."
        )
        if to is None and (dropped := await backups.drop_old(store, stores.retention, now=now())):
            say(f"{store.name}: deleted {dropped} backups older than {stores.retention.keep_days} days.")
    if to is not None:
        say(
            "Delete this copy yourself when you no longer need it. Remora can't erase anything from it when someone "
            "asks to forget."
        )
    return made


async def restore(
    file: Path, store: Path, *, keep: bool, keep_days: int, now: int, say: Callable[[str], None], progress: Progress
) -> Restored:
    """Puts a backup in the place of a store, and reports the outcome. Raises as `memory.transfer.restore` does."""

    def stage(name: Stage) -> None:
        if name in _STAGES:
            say(_STAGES[name])

    done = await restoring.restore(file, store, now=now, keep=keep, say=stage, progress=progress)
    for line in summary(done, file, keep_days):
        say(line)
    return done


async def erase_again(
    stores: Stores, lists: Sequence[Path], *, name: str | None, now: int, database_url: str, say: Callable[[str], None]
) -> None:
    """Repeats the erasings of the stores' own lists and of `lists`. Raises `NoSuchStore` and `StorageError`."""
    chosen = stores.served(name, on_server=bool(database_url))
    if strange := [one.name for one in lists if len(chosen) > 1 and one.stem not in stores.names]:
        raise NoSuchStore(f"Which database does {strange[0]} belong to? Choose one with --store.")
    without_list = []
    for store in chosen:
        theirs = [one for one in lists if len(chosen) == 1 or one.stem == store.name]
        found = restoring.lists_of(store, theirs)
        if not found:
            without_list.append(f"{store}.erased")
            continue
        say(f"{store.name}: erasing what was forgotten ...")
        done = await restoring.erase_again(store, found, now=now, database_url=database_url)
        for line in erased_summary(done, store):
            say(line)
    if without_list:
        raise NoSuchStore(
            f"There is no list {', '.join(without_list)}, so it is not known what was forgotten there. Copy it from "
            "your copy of data_dir, with the .key beside it. If nobody has ever forgotten anything, there is nothing "
            "to do."
        )


def erased_summary(done: restoring.ErasedAgain, store: Path) -> Sequence[str]:
    again = done.again
    lines = [
        f"{store.name}: {again.erasings} of {done.listed} requests were missing and are carried out again.",
        f"Erased with them: {counted(messages=again.messages, memories=again.memories)}. No trace is left.",
    ]
    if done.bad_lines:
        lines.append(
            f"{done.bad_lines} lines of the lists can't be read, so what they list may be back. People can ask to "
            "forget it again."
        )
    if done.lost_key:
        lines.append(_LOST_KEY.format(store=store.name))
    return lines


def summary(done: Restored, file: Path, keep_days: int) -> Sequence[str]:
    rows = done.contents.rows
    held = counted(**{table: rows[table] for table in ("people", "messages", "memories")})
    lines = [f"{done.store} is now {file.name}: {held}."]
    if done.erased.erasings:
        lines.append(
            f"Forgotten since the backup and erased again: {done.erased.erasings} requests, {done.erased.messages} "
            f"messages, {done.erased.memories} memories."
        )
    if done.inbox_ended or done.outbox_ended:
        lines.append(
            f"Unfinished in the backup and dropped, because they may have been handled since: {done.inbox_ended} "
            f"messages to answer, {done.outbox_ended} to send."
        )
    if done.unlinked:
        lines.append(f"Accounts unlinked since the backup and unlinked again: {done.unlinked}.")
    if done.unread is not None:
        lines.append(
            f"The replaced database could not be read ({done.unread}). So these changes since the backup are lost: "
            "who was blocked or opted out, and anything forgotten that is not in the list beside the database."
        )
    if done.bad_lines:
        lines.append(
            f"{done.bad_lines} lines of {done.store.name}.erased can't be read, so what they list may be back. "
            "People can ask to forget it again."
        )
    if done.lost_key:
        lines.append(_LOST_KEY.format(store=done.store.name))
    if done.kept is not None:
        lines.append(
            f"The replaced database is kept as {done.kept} and deleted after {keep_days} days, like backups. "
            "It still holds what people forget from now on, so delete it once you no longer need it."
        )
    lines.append("You can start Remora now. It knows nothing said since the backup, so people may have to repeat it.")
    return lines
