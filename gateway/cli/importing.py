"""`remora import` and `remora export`: files and folders on one side, a person's or group's memory on the other.

Invariants: only the operator's input decides who the owner is, never a file. Nothing is brought in before it was shown.
Everything left out is named, with the reason. Files are read and never changed, and links in a folder are not followed.
"""

from __future__ import annotations

import hashlib
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Final

from agents import plugins
from channels.base import Place
from channels.ids import FORMATS
from gateway.cli.start import Unusable, counted
from gateway.config.loading import Config
from gateway.reading.plain_text import decoded
from memory.context import Context
from memory.errors import NotFound
from memory.service import Service
from memory.transfer.export import Exported
from memory.transfer.formats import assistants, markdown, remora, telegram
from memory.transfer.formats.material import ImportedItem, Mask, Masking, Material, Ownership, Skipped, together
from memory.transfer.homes import Known, Owner
from memory.transfer.imports import Import
from memory.transfer.transfers import Brought, ImportPreview, Transfer

#: The most bytes of a file. An export of millions of messages is smaller; reading it takes five times its size in RAM.
_MOST_BYTES: Final = 2_000_000_000
_MOST_FILES: Final = 5_000
#: The most people, groups and left-out items that are shown, and the most characters of each.
_SHOWN: Final = 20
_LINE: Final = 100

#: Files of an assistant's workspace: its memory, its persona and its instructions.
_MEMORY: Final = frozenset({"memory.md", "user.md", "history.md"})
_PERSONAS: Final = frozenset({"soul.md", "identity.md"})
_RULES: Final = frozenset({"agents.md", "tools.md"})
_FOLDERS: Final = frozenset({"memory", "memories"})
#: Pages in such folders that explain how to use the folder.
_MANUALS: Final = frozenset({"readme.md", "skill.md"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A requested import. `talks` selects chats of a Telegram export; `me` is the owner's user id in it.

    `format` names the importer of an installed package; without it the files tell what they are.
    """

    path: Path
    owner: Owner
    learn: bool
    talks: tuple[str, ...] = ()
    me: str | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The content of the files, advice on the rest of them, and a digest that recognizes the same files again.

    `channel` is the id of the configured channel that the talk comes from, if the files tell it.
    """

    material: Material
    advice: tuple[str, ...]
    digest: str
    channel: str | None = None


def agent_named(config: Config, agent: str | None) -> str:
    """Returns the name of an agent that there is; of the default agent if none was named. Raises `Unusable`."""
    name = agent or config.default_agent
    if name not in config.agents:
        raise Unusable(f"There is no agent {name}. The agents are: {', '.join(sorted(config.agents))}.")
    return name


async def asker(memory: Service, owner: Owner, named: str) -> Context:
    """Returns the context of an owner, given as `named`. Raises `Unusable` if they have never talked to the agent."""
    context = await memory.identities.whose(
        owner.platform, owner.reference, private=owner.kind == "person", thread=owner.thread
    )
    if context is None:
        raise Unusable(f"{named} has never talked to an agent that uses {owner.agent}'s database.")
    return context


def owner_of(
    config: Config, *, person: str | None, chat: str | None, agent_wide: bool, agent: str | None
) -> Owner | None:
    name = agent_named(config, agent)
    if sum((person is not None, chat is not None, agent_wide)) > 1:
        raise Unusable("Memories can belong to only one owner. Give just one of --person, --chat and --agent-wide.")
    if agent_wide:
        return Owner(kind="agent", agent=name)
    if person is not None:
        platform, user_id, rest = _parts(config, person, "--person", "telegram:123456")
        if rest or not FORMATS[platform].is_person(user_id):
            raise Unusable(
                f"--person {person}: {user_id} is not a user id on {platform}. Write it like telegram:123456."
            )
        return Owner(kind="person", agent=name, platform=platform, reference=user_id)
    if chat is not None:
        platform, reference, thread = _parts(config, chat, "--chat", "telegram:-1001234567890")
        if platform == "telegram" and not re.fullmatch(r"-\d{1,19}", reference):
            raise Unusable(f"--chat {chat}: Telegram groups have negative ids. Write it like telegram:-1001234567890.")
        own_threads = config.agents[name].memory.threads == "own"
        return Owner(
            kind="group",
            agent=name,
            platform=platform,
            reference=reference,
            thread=thread or None,
            own_threads=own_threads,
        )
    return None


def nobody(known: Sequence[Known]) -> str:
    lines = [
        "Whose memory do you mean? Choose --person PLATFORM:USER for a person, --chat CHANNEL:CHAT for a group,",
        "or --agent-wide for everyone who talks to the agent.",
    ]
    for private, title, option in ((True, "people", "--person"), (False, "groups", "--chat")):
        some = [one for one in known if one.private is private]
        lines.append(f"Known {title}:" if some else f"No {title} are known yet, but you can name them anyway.")
        lines += [f"  {option} {one.reference}  {one_line(one.name)}".rstrip() for one in some[:_SHOWN]]
        if len(some) > _SHOWN:
            lines.append(f"  … and {len(some) - _SHOWN} more")
    return "\n".join(lines)


def gather(config: Config, wanted: Wanted, *, mask: Mask) -> Found:
    """Reads and masks the files at the path. Raises `Unusable`."""
    path = wanted.path
    if not path.exists():
        raise Unusable(f"There is nothing at {path}.")
    if not path.is_dir() and not path.is_file():
        # A pipe or a device may never end.
        raise Unusable(f"{path} is neither a file nor a folder. Name the file or folder itself.")
    files = sorted(_files(path)) if path.is_dir() else [path]
    if wanted.format is not None:
        return _from_plugin(wanted.format, files, mask)
    exports = [file for file in files if path in (file.parent, file)]
    ours = [file for file in exports if file.suffix == ".json" and _is_ours(file)]
    result = next((file for file in exports if file.name == "result.json"), None)
    if ours:
        if len(ours) > 1:
            raise Unusable(f"There are {len(ours)} Remora exports in {path}. Name the file you mean.")
        return _from_remora(ours[0], mask)
    if result is None and (talked := _from_assistants(config, wanted, files, mask)) is not None:
        notes = [file for file in files if path.is_dir() and file.suffix.casefold() in (".md", ".markdown")]
        return _both(talked, _from_notes(config, wanted, notes, mask, alone=False)) if notes else talked
    if result is not None or (path.is_file() and path.suffix == ".json"):
        return _from_telegram(config, wanted, result or path, mask)
    if any(file.name.startswith("messages") and file.suffix == ".html" for file in exports):
        raise Unusable(
            f"{path} is an export in HTML. In Telegram Desktop, choose the format “Machine-readable JSON” and export "
            "again."
        )
    return _from_notes(config, wanted, files, mask)


def session_key(config: Config, owner: Owner, channel: str | None) -> Callable[[str | None], str]:
    named = next((bot.id for bot in config.settings.channels.bots if bot.platform == owner.platform), owner.platform)
    return lambda thread: (
        Place(channel=channel or named, chat=owner.reference, thread=thread or owner.thread).session_key
    )


def told(preview: ImportPreview, owner: Owner) -> str:
    counts = preview.counts
    lines: list[str] = []
    if preview.before is not None:
        when = f"on {_date(preview.before.started_at)} as {preview.before.short_id}"
        if preview.before.state == "running":
            lines.append(f"The import of these files started {when} and was interrupted. It continues from there.")
        else:
            lines.append(f"These files were already imported {when}.")
    kinds = ", ".join(counted(**{f"{kind}s": n}) for kind, n in counts.new.items())
    lines.append(f"New: {kinds or 'no memories'}, {counted(messages=counts.messages)}.")
    lines += [f"  {one_line(text)}" for text in preview.first[:_SHOWN]]
    beyond = counts.memories + counts.messages - len(preview.first[:_SHOWN])
    if beyond > 0:
        lines.append(f"  … and {beyond} more")
    if counts.duplicates or counts.repeated:
        lines.append(f"Already there: {counted(memories=counts.duplicates, messages=counts.repeated)}.")
        lines += [f"  {one_line(text)}" for text in preview.duplicates[:5]]
    facts = (
        (counts.closed, "Replaced older values, which are kept with their dates"),
        (counts.forgotten, "Forgotten on request, so left out: memories"),
        (counts.erased, "Erased on request, so left out: messages"),
        (counts.unwished, "Left out because someone doesn't want them kept: memories"),
        (counts.worthless, "Left out because they hold only a number, path, time or masked secret: entries"),
        (preview.masked, "Texts with secrets, which are masked"),
    )
    lines += [f"{what}: {n}." for n, what in facts if n]
    if preview.flags:
        lines.append(f"Texts that look like instructions, kept as plain data and not obeyed ({len(preview.flags)}):")
        lines += [f"  {one_line(text)}" for text in preview.flags[:_SHOWN]]
    if preview.skipped:
        lines.append(f"Left out ({len(preview.skipped)}):")
        lines += [f"  {one_line(one.where)}: {one_line(one.why)}" for one in preview.skipped[:_SHOWN]]
        if len(preview.skipped) > _SHOWN:
            lines.append(f"  … and {len(preview.skipped) - _SHOWN} more")
    if owner.kind == "agent":
        lines.append(
            f"{owner.agent} will use this when it answers anyone. It is remembered, not obeyed: memory has no "
            "authority. To tell the agent what to do, edit its YAML file."
        )
    return "\n".join(lines)


def done(brought: Brought) -> str:
    counts = brought.counts
    text = (
        f"Imported as {brought.short_id}: {counted(memories=counts.memories, messages=counts.messages)}. "
        f"`remora import undo {brought.short_id}` undoes it."
    )
    if brought.unread:
        text += f"\nLearning from {counted(messages=brought.unread)} now. Remora reads the rest while it runs."
    return text


def listed(imports: Sequence[Import]) -> str:
    if not imports:
        return "There are no imports yet."
    states = {"running": "interrupted: run the same command to continue", "done": "done", "undone": "undone"}
    return "\n".join(
        f"{one.short_id}  {_date(one.started_at)}  {one.format}, for {one_line(one.whose)}: "
        f"{counted(memories=one.counts.memories, messages=one.counts.messages)}, {states[one.state]}"
        for one in imports
    )


async def find_import(transfers: Iterable[Transfer], short_id: str) -> Transfer:
    for transfer in transfers:
        if any(one.short_id == short_id for one in await transfer.imports()):
            return transfer
    raise NotFound(f"There is no import {short_id}. `remora import list` shows all imports.")


def write(exported: Exported, owner: Owner, folder: Path, *, now: int) -> tuple[Path, Path]:
    """Writes both forms of an export into a folder. Returns their paths. Raises `OSError`."""
    whose = owner.agent if owner.kind == "agent" else f"{owner.platform}-{owner.reference.lstrip('-')}"
    stamp = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y-%m-%dT%H%M%S")
    stem = f"remora-{re.sub(r'[^A-Za-z0-9_-]', '_', whose)[:60]}-{stamp}"
    folder.mkdir(parents=True, exist_ok=True)
    paths = (folder / f"{stem}.json", folder / f"{stem}.md")
    for path, data in zip(paths, (exported.data, exported.page.encode()), strict=True):
        # The file holds a whole memory, so no other user of this machine may read it.
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(data)
    return paths


# Reading ------------------------------------------------------------------------------------------------------------


def _from_plugin(name: str, files: Sequence[Path], mask: Mask) -> Found:
    try:
        read: Callable[[bytes, str], Iterable[ImportedItem]] = plugins.load(plugins.IMPORTERS, name)
    except plugins.PluginUnusable as exc:
        offered = ", ".join(sorted(plugins.installed(plugins.IMPORTERS))) or "none"
        raise Unusable(f"--format {name}: {exc} Installed: {offered}.") from exc
    masking, items, seen = Masking(mask), list[ImportedItem](), list[bytes]()
    for file in files:
        data = _bytes(file)
        seen += [file.name.encode(), data]
        try:
            items += [replace(item, value=masking(item.value)) for item in read(data, file.name)]
        # A boundary: a stranger's reader may raise anything about a file.
        except Exception as exc:
            raise Unusable(f"{name} can't read {file}: {type(exc).__name__}: {exc}") from exc
    material = Material(format=name, items=tuple(items), masked=masking.count)
    return Found(material=material, advice=(), digest=_digest(seen))


def _from_remora(file: Path, mask: Mask) -> Found:
    data = _bytes(file)
    try:
        material = remora.read(_decoded(data), mask=mask)
    except remora.NotRemoraExport as exc:
        raise Unusable(f"{file}: {exc}") from exc
    return Found(material=material, advice=(), digest=_digest([data]))


def _from_telegram(config: Config, wanted: Wanted, file: Path, mask: Mask) -> Found:
    owner = wanted.owner
    if owner.kind == "agent":
        raise Unusable("A Telegram export belongs to a person or a group. Add --person or --chat.")
    data = _bytes(file)
    try:
        export = telegram.read(_decoded(data))
    except telegram.NotTelegramExport as exc:
        raise Unusable(f"{file}: {exc}") from exc
    bots = {bot.number: bot.id for bot in config.settings.channels.telegram}
    me = (wanted.me or "").removeprefix("user") or (owner.reference if owner.platform == "telegram" else export.account)
    if owner.kind == "person" and me is None:
        raise Unusable(
            f"{file} does not say which messages are the person's own. Add --me with their Telegram user id."
        )
    talks = _chosen(export.talks, wanted, bots)
    timezone = config.agents[owner.agent].timezone
    read = [
        telegram.lines(
            talk,
            owner=me if owner.kind == "person" else None,
            bots=bots,
            timezone=timezone,
            mask=mask,
            learn=wanted.learn,
        )
        for talk in talks
    ]
    material = together(read, format="telegram")
    lines = tuple(replace(line, number=n) for n, line in enumerate(material.lines))
    material = replace(material, lines=lines, skipped=(*export.skipped, *material.skipped))
    if owner.kind == "person":
        # The author is the owner, whatever the owner's platform here.
        lines = tuple(line if line.author is None else replace(line, author=remora.OWNER) for line in lines)
        material = replace(material, lines=lines)
        if lines and not any(line.author for line in lines):
            raise Unusable(f"None of these messages is from the user {me}. Check --person or --me.")
    channel = next((bots[talk.id] for talk in talks if talk.id in bots), None)
    digest = _digest([data, *(talk.id.encode() for talk in talks)])
    return Found(material=material, advice=(), digest=digest, channel=channel)


def _from_assistants(config: Config, wanted: Wanted, files: Sequence[Path], mask: Mask) -> Found | None:
    """Returns the content of other assistants' exports among the files; None without any."""
    kinds = (".json", ".jsonl", ".zip") if wanted.path.is_file() else (".zip",)
    named = [file for file in files if file.suffix in kinds or assistants.NAMED.fullmatch(file.name.casefold())]
    texts = [(name, _decoded(data)) for file in named for name, data in _unpacked(file)]
    written_at = max((int(file.stat().st_mtime * 1000) for file in named), default=0)
    timezone = config.agents[wanted.owner.agent].timezone
    material = assistants.read(texts, at=written_at, timezone=timezone, mask=mask, learn=wanted.learn)
    if material is None:
        return None
    if wanted.owner.kind != "person":
        if wanted.path.is_dir():
            return None  # the notes beside it may be meant
        raise Unusable("What somebody told another assistant belongs to that person. Add --person.")
    return Found(material=material, advice=(), digest=_digest(part.encode() for text in texts for part in text))


def _both(talked: Found, noted: Found) -> Found:
    material = together([talked.material, noted.material], format=f"{talked.material.format} with notes")
    return Found(
        material=material, advice=noted.advice, digest=_digest([talked.digest.encode(), noted.digest.encode()])
    )


def _unpacked(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yields a file, or those of an archive that are of use, with their names."""
    if file.suffix != ".zip":
        yield file.name, _bytes(file)
        return
    try:
        with zipfile.ZipFile(file) as archive:
            inner = [one for one in archive.infolist() if assistants.NAMED.fullmatch(PurePath(one.filename).name)]
            if sum(one.file_size for one in inner) > _MOST_BYTES:
                raise Unusable(
                    f"{file} holds more than {_MOST_BYTES // 1_000_000:,} MB. Unpack it, and import its parts."
                )
            for one in inner:
                yield one.filename, archive.read(one)
    # An archive may be damaged, encrypted, or of a kind that Python can't unpack.
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        OSError,
        EOFError,
        zlib.error,
        lzma.LZMAError,
    ) as exc:
        raise Unusable(f"{file} can't be unpacked ({exc}). Unpack it yourself, and name the folder.") from exc


def _chosen(talks: Sequence[telegram.Talk], wanted: Wanted, bots: Collection[str]) -> list[telegram.Talk]:
    """Returns the selected talks: by id, else the only talk, the group's own, or those with the configured bots."""
    owner = wanted.owner
    private = owner.kind == "person"
    if wanted.talks:
        found = [talk for talk in talks if {talk.id, *talk.references} & set(wanted.talks)]
    elif private:
        found = list(talks) if len(talks) == 1 else [talk for talk in talks if talk.id in bots and talk.private]
    else:
        found = [talk for talk in talks if owner.reference in talk.references] or (
            list(talks) if len(talks) == 1 else []
        )
    if any(talk.private is not private for talk in found):
        raise Unusable(
            "This is a group chat, so it can't become one person's memory. Name the group with --chat."
            if private
            else "This is a private chat, so it can't become a group's memory. Name the person with --person."
        )
    if not found:
        shown = "\n".join(f"  --talk {line}" for line in list(telegram.shown(talks))[:_SHOWN])
        raise Unusable(f"Which chats in this export do you mean? Choose with --talk:\n{shown}")
    return found


def _from_notes(config: Config, wanted: Wanted, files: Sequence[Path], mask: Mask, *, alone: bool = True) -> Found:
    """Reads notes. Raises `Unusable` if there are none and nothing else is imported with them (`alone`)."""
    owner = wanted.owner
    root = wanted.path if wanted.path.is_dir() else wanted.path.parent
    folder = config.agents_dir / ("" if owner.agent == config.default_agent else owner.agent)
    read: list[Material] = []
    skipped: list[Skipped] = []
    advice: list[str] = []
    seen: list[bytes] = []
    for file in files:
        where = file.relative_to(root).as_posix()
        if file.suffix.casefold() not in (".md", ".markdown", ".txt"):
            if wanted.path.is_file():
                raise Unusable(f"{file} can't be imported. These can: {_TAKEN}.")
            continue
        name = file.name.casefold()
        why = None if wanted.path.is_file() and name not in _PERSONAS else _not_memory(name, where, owner.kind)
        if why is not None:
            skipped.append(Skipped(where=where, why=why))
        data = _bytes(file)
        if name in _PERSONAS:
            advice.append(f"{where} is not a memory. To give the agent this voice, save it as {folder / 'SOUL.md'}.")
        if why is not None:
            continue
        if _is_binary(data):
            if wanted.path.is_file():
                raise Unusable(f"{file} holds no text. Unpack an archive, and name the folder with its files.")
            skipped.append(Skipped(where=where, why="it holds no text"))
            continue
        seen += [where.encode(), data]
        read.append(
            markdown.read(
                _decoded(data),
                where=where,
                written_at=int(file.stat().st_mtime * 1000),
                timezone=config.agents[owner.agent].timezone,
                mask=mask,
                of=owner.kind,
                day=markdown.day_of(file.name),
            )
        )
        if name in _RULES:
            advice.append(
                f"{where} is remembered, not obeyed. To give the agent rules, save them as {folder / 'AGENTS.md'}."
            )
    if alone and not read and not advice:
        raise Unusable(f"{wanted.path} contains nothing to import. These can be imported: {_TAKEN}.")
    material = together(read, format="markdown")
    material = replace(material, skipped=(*material.skipped, *skipped))
    return Found(material=material, advice=tuple(advice), digest=_digest(seen))


_TAKEN: Final = (
    "MEMORY.md, USER.md and daily notes (or a folder with them), exports of ChatGPT, Claude, Open WebUI, mem0 and "
    "Telegram Desktop, OpenClaw's sessions, a Remora export"
)


def _not_memory(name: str, where: str, kind: Ownership) -> str | None:
    """Returns the reason why a file of a workspace is not read for memories; None if it is read."""
    if name in _PERSONAS:
        return "it describes the agent: see below"
    if name in _RULES:
        return (
            None
            if kind == "agent"
            else "these are an agent's rules, not anyone's memory; import them with --agent-wide"
        )
    within = [part.casefold() for part in Path(where).parts[:-1]]
    remembered = name in _MEMORY or markdown.day_of(name) is not None or bool(_FOLDERS & set(within))
    if remembered and name not in _MANUALS:
        return None
    return "not a memory file; to import it, name the file itself"


def _files(folder: Path) -> Iterator[Path]:
    """Yields the files of a folder, without hidden files and links. Raises `Unusable` if there are too many."""
    count = 0
    for file in folder.rglob("*"):
        inner = file.relative_to(folder)
        if any(part.startswith(".") or part == "node_modules" for part in inner.parts):
            continue
        if any((folder / part).is_symlink() for part in (inner, *inner.parents)) or not file.is_file():
            continue
        count += 1
        if count > _MOST_FILES:
            raise Unusable(f"There are more than {_MOST_FILES:,} files in {folder}. Name the folder with the notes.")
        yield file


def _bytes(file: Path) -> bytes:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise Unusable(f"{file} is larger than {_MOST_BYTES // 1_000_000:,} MB. Export it in parts.")
        return file.read_bytes()
    except OSError as exc:
        raise Unusable(f"Can't read {file}: {exc.strerror}.") from exc


def _decoded(data: bytes) -> str:
    text = decoded(data, chars=len(data))
    return data.decode("utf-8", "replace") if text is None else text


def _is_binary(data: bytes) -> bool:
    return b"\0" in data[:8_000] and decoded(data, chars=8_000) is None


def _is_ours(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return re.search(rb'"format"\s{0,9}:\s{0,9}"remora"', opened.read(300)) is not None
    except OSError:
        return False


def _digest(parts: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()[:32]


def _parts(config: Config, text: str, option: str, example: str) -> tuple[str, str, str]:
    first, _, rest = text.partition(":")
    named = {bot.id: bot.platform for bot in config.settings.channels.bots}
    platform = named.get(first, first)
    if not rest or platform not in FORMATS:
        raise Unusable(
            f"{option} {text}: {first or 'this'} is not a platform or channel here. Write it like {example}."
        )
    # The ids of some platforms contain ":".
    reference, _, thread = (rest, "", "") if FORMATS[platform].is_chat(rest) else rest.rpartition(":")
    return platform, reference or rest, thread if reference else ""


def one_line(text: str, most: int = _LINE) -> str:
    """Returns untrusted text as one line of at most `most` characters, without anything that a terminal would obey."""
    flat = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * most])
    flat = " ".join(flat.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _date(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000, UTC).strftime("%Y-%m-%d %H:%M")
