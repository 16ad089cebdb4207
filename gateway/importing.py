"""`remora import` and `remora export`: files and folders on one side, somebody's memory on the other.

Invariants: nobody becomes the owner by what a file says, only by what the operator typed; nothing is brought in before
it was shown; what is left out is named, with the reason; files are read, never changed, and links in a folder are not
followed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from channels.base import Place
from gateway.config import Config
from memory.errors import NotFound
from memory.transferring import (
    Brought,
    Exported,
    Import,
    Known,
    Mask,
    Material,
    Owner,
    Ownership,
    Preview,
    Skipped,
    Transfer,
    markdown,
    remora,
    telegram,
    together,
)

#: Bytes of one file; an export of millions of messages stays below, and is read at five times its size in memory.
_MOST_BYTES: Final = 2_000_000_000
_MOST_FILES: Final = 5_000
#: How many people and groups, things left out, and letters of one of them are shown.
_SHOWN: Final = 20
_LINE: Final = 100
#: What agents/spec.py takes as a persona.
_PERSONA: Final = 20_000

#: Files of an assistant's workspace: what it remembers, what it is, and what it is told to do.
_MEMORY: Final = frozenset({"memory.md", "user.md", "history.md"})
_PERSONAS: Final = frozenset({"soul.md", "identity.md"})
_RULES: Final = frozenset({"agents.md", "tools.md"})
_FOLDERS: Final = frozenset({"memory", "memories"})
#: Pages in such folders that say how the folder is used.
_MANUALS: Final = frozenset({"readme.md", "skill.md"})


class Unusable(Exception):
    """What was typed, or what lies there, can't be brought in. `str()` is written for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for. `talks` chooses chats of a Telegram export; `me` is the owner's user id in it."""

    path: Path
    owner: Owner
    learn: bool
    talks: tuple[str, ...] = ()
    me: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What files hold, what to do with the rest of them, and a digest by which the same files are known again.

    `channel` is the id of the configured channel whose talk it is, where the files tell.
    """

    material: Material
    advice: tuple[str, ...]
    digest: str
    channel: str | None = None


def owner_of(
    config: Config, *, person: str | None, chat: str | None, agent_wide: bool, agent: str | None
) -> Owner | None:
    """The owner that was named; None when none was. Raises `Unusable`."""
    name = agent or config.default_agent
    if name not in config.agents:
        raise Unusable(f"There is no agent {name}. There are: {', '.join(sorted(config.agents))}.")
    if sum((person is not None, chat is not None, agent_wide)) > 1:
        raise Unusable("An import has one owner: give one of --person, --chat and --agent-wide.")
    if agent_wide:
        return Owner(kind="agent", agent=name)
    if person is not None:
        platform, user_id, rest = _parts(config, person, "--person", "telegram:123456")
        if rest or (platform in ("telegram", "discord") and not user_id.isdecimal()):
            raise Unusable(f"--person {person}: people are known by their numeric user id, as in telegram:123456.")
        return Owner(kind="person", agent=name, platform=platform, reference=user_id)
    if chat is not None:
        platform, reference, thread = _parts(config, chat, "--chat", "telegram:-1001234567890")
        if platform == "telegram" and not re.fullmatch(r"-\d{1,19}", reference):
            raise Unusable(
                f"--chat {chat}: groups on Telegram have a number below zero, as in telegram:-1001234567890."
            )
        return Owner(kind="group", agent=name, platform=platform, reference=reference, thread=thread or None)
    return None


def nobody(known: Sequence[Known]) -> str:
    """What is said to whoever named no owner: what they can choose from."""
    lines = [
        "Whose memory is this to be? Name one: --person PLATFORM:USER for a person, --chat CHANNEL:CHAT for a group,",
        "or --agent-wide for everybody who talks with the agent.",
    ]
    for private, title, option in ((True, "people", "--person"), (False, "groups", "--chat")):
        some = [one for one in known if one.private is private]
        lines.append(f"Known {title}:" if some else f"No {title} are known yet; they can be named all the same.")
        lines += [f"  {option} {one.reference}  {_line(one.name)}".rstrip() for one in some[:_SHOWN]]
        if len(some) > _SHOWN:
            lines.append(f"  … and {len(some) - _SHOWN} more")
    return "\n".join(lines)


def gather(config: Config, wanted: Wanted, *, mask: Mask) -> Found:
    """What lies at the path, read and masked. Raises `Unusable`."""
    path = wanted.path
    if not path.exists():
        raise Unusable(f"There is nothing at {path}.")
    files = sorted(_files(path)) if path.is_dir() else [path]
    exports = [file for file in files if path in (file.parent, file)]
    ours = [file for file in exports if file.suffix == ".json" and _is_ours(file)]
    result = next((file for file in exports if file.name == "result.json"), None)
    if ours:
        if len(ours) > 1:
            raise Unusable(f"There are {len(ours)} exports of Remora in {path}: name the one that is meant.")
        return _from_remora(ours[0], mask)
    if result is not None or (path.is_file() and path.suffix == ".json"):
        return _from_telegram(config, wanted, result or path, mask)
    if any(file.name.startswith("messages") and file.suffix == ".html" for file in exports):
        raise Unusable(
            f"{path} is an export as web pages. In Telegram Desktop choose the format “Machine-readable JSON”, and "
            "export again."
        )
    return _from_notes(config, wanted, files, mask)


def session_key(config: Config, owner: Owner, channel: str | None) -> Callable[[str | None], str]:
    """Under which key the owner's session of a thread goes, where there is none yet."""
    named = next((bot.id for bot in config.settings.channels.bots if bot.platform == owner.platform), owner.platform)
    return lambda thread: (
        Place(channel=channel or named, chat=owner.reference, thread=thread or owner.thread).session_key
    )


def told(preview: Preview, owner: Owner) -> str:
    """A preview, for the operator."""
    counts = preview.counts
    lines: list[str] = []
    if preview.before is not None:
        when = f"on {_date(preview.before.started_at)} as {preview.before.short_id}"
        if preview.before.state == "running":
            lines.append(f"Bringing these files in began {when} and was cut short: it goes on from there.")
        else:
            lines.append(f"These very files were brought in {when}.")
    kinds = ", ".join(f"{n} {kind}s" if n != 1 else f"1 {kind}" for kind, n in counts.new.items())
    lines.append(f"New: {kinds or 'no memories'}, {counts.messages} messages.")
    lines += [f"  {_line(text)}" for text in preview.first[:_SHOWN]]
    beyond = counts.memories + counts.messages - len(preview.first[:_SHOWN])
    if beyond > 0:
        lines.append(f"  … and {beyond} more")
    if counts.duplicates or counts.repeated:
        lines.append(f"There already: {counts.duplicates} memories, {counts.repeated} messages.")
        lines += [f"  {_line(text)}" for text in preview.duplicates[:5]]
    facts = (
        (counts.closed, "older values are replaced, and keep their dates"),
        (counts.forgotten, "memories were forgotten on request, and stay so"),
        (counts.erased, "messages were erased on request, and stay so"),
        (counts.unwished, "memories are left out, for somebody wants nothing of the kind kept"),
        (counts.worthless, "entries say nothing: a bare number, path, time or masked secret"),
        (preview.masked, "texts hold secrets, which are masked"),
    )
    lines += [f"{n} {what}." for n, what in facts if n]
    if preview.flags:
        lines.append(f"{len(preview.flags)} read like instructions. They are kept as data, and have no authority:")
        lines += [f"  {_line(text)}" for text in preview.flags[:_SHOWN]]
    if preview.skipped:
        lines.append(f"Left out ({len(preview.skipped)}):")
        lines += [f"  {_line(one.where)}: {_line(one.why)}" for one in preview.skipped[:_SHOWN]]
        if len(preview.skipped) > _SHOWN:
            lines.append(f"  … and {len(preview.skipped) - _SHOWN} more")
    if owner.kind == "agent":
        lines.append(
            f"Everybody who talks with {owner.agent} will be answered with this in mind. It is remembered, not obeyed: "
            "memory has no authority. What the agent is to do stands in its YAML file."
        )
    return "\n".join(lines)


def done(brought: Brought) -> str:
    """How an import went, for the operator."""
    counts = brought.counts
    text = (
        f"Brought in as {brought.short_id}: {counts.memories} memories, {counts.messages} messages. "
        f"`remora import undo {brought.short_id}` takes it out again."
    )
    if brought.unread:
        text += f"\n{brought.unread} messages are read for memories now; what is left then is read while Remora runs."
    return text


def listed(imports: Sequence[Import]) -> str:
    """Every import in a line."""
    if not imports:
        return "Nothing was ever brought in."
    states = {"running": "cut short: the same command goes on", "done": "done", "undone": "undone"}
    return "\n".join(
        f"{one.short_id}  {_date(one.started_at)}  {one.format}, for {_line(one.whose)}: "
        f"{one.counts.memories} memories, {one.counts.messages} messages, {states[one.state]}"
        for one in imports
    )


async def find_import(transfers: Iterable[Transfer], short_id: str) -> Transfer:
    """The store that holds an import. Raises `NotFound`."""
    for transfer in transfers:
        if any(one.short_id == short_id for one in await transfer.imports()):
            return transfer
    raise NotFound(f"There is no import {short_id}: `remora import list` shows them.")


def write(exported: Exported, owner: Owner, folder: Path, *, now: int) -> tuple[Path, Path]:
    """Put both forms of an export into a folder; returns their paths. Raises `OSError`."""
    whose = owner.agent if owner.kind == "agent" else f"{owner.platform}-{owner.reference.lstrip('-')}"
    stamp = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y-%m-%dT%H%M%S")
    stem = f"remora-{re.sub(r'[^A-Za-z0-9_-]', '_', whose)[:60]}-{stamp}"
    folder.mkdir(parents=True, exist_ok=True)
    paths = (folder / f"{stem}.json", folder / f"{stem}.md")
    for path, data in zip(paths, (exported.data, exported.page.encode()), strict=True):
        # Somebody's whole memory: for nobody else on this machine.
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(data)
    return paths


# Reading ------------------------------------------------------------------------------------------------------------


def _from_remora(file: Path, mask: Mask) -> Found:
    data = _bytes(file)
    try:
        material = remora.read(_decoded(data, file), mask=mask)
    except remora.NoExport as exc:
        raise Unusable(f"{file}: {exc}") from exc
    return Found(material=material, advice=(), digest=_digest([data]))


def _from_telegram(config: Config, wanted: Wanted, file: Path, mask: Mask) -> Found:
    owner = wanted.owner
    if owner.kind == "agent":
        raise Unusable("What people said is somebody's: give --person or --chat with an export of Telegram.")
    data = _bytes(file)
    try:
        export = telegram.read(_decoded(data, file))
    except telegram.NoExport as exc:
        raise Unusable(f"{file}: {exc}") from exc
    bots = {bot.number: bot.id for bot in config.settings.channels.telegram}
    me = wanted.me or (owner.reference if owner.platform == "telegram" else export.account)
    if owner.kind == "person" and me is None:
        raise Unusable(f"{file} does not say which messages are the owner's: give --me with their Telegram user id.")
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
        material = _as_owner(material, owner)
        if lines and not any(line.author for line in lines):
            raise Unusable(f"None of these messages is from the user {me}: look at --person or --me.")
    channel = next((bots[talk.id] for talk in talks if talk.id in bots), None)
    digest = _digest([data, *(talk.id.encode() for talk in talks)])
    return Found(material=material, advice=(), digest=digest, channel=channel)


def _as_owner(material: Material, owner: Owner) -> Material:
    """The owner's own words as theirs, on whichever platform they are known here."""
    return replace(
        material,
        lines=tuple(line if line.author is None else replace(line, author=remora.OWNER) for line in material.lines),
    )


def _chosen(talks: Sequence[telegram.Talk], wanted: Wanted, bots: Collection[str]) -> list[telegram.Talk]:
    """The talks that are meant: by id, else the only one, the group's own, or those with our bots."""
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
            "A group's talk is no one person's memory: name the group with --chat."
            if private
            else "This is a private chat: what is said there is no group's memory. Name the person with --person."
        )
    if not found:
        shown = "\n".join(f"  --talk {line}" for line in list(telegram.shown(talks))[:_SHOWN])
        raise Unusable(f"Which chats of this export are meant? Choose with --talk:\n{shown}")
    return found


def _from_notes(config: Config, wanted: Wanted, files: Sequence[Path], mask: Mask) -> Found:
    owner = wanted.owner
    root = wanted.path if wanted.path.is_dir() else wanted.path.parent
    spec = config.agents_dir / f"{owner.agent}.yaml"
    read: list[Material] = []
    skipped: list[Skipped] = []
    advice: list[str] = []
    seen: list[bytes] = []
    for file in files:
        where = file.relative_to(root).as_posix()
        if file.suffix.casefold() not in (".md", ".markdown", ".txt"):
            if wanted.path.is_file():
                raise Unusable(f"{file} is nothing that can be brought in: {_TAKEN}.")
            continue
        name = file.name.casefold()
        why = None if wanted.path.is_file() and name not in _PERSONAS else _not_memory(name, where, owner.kind)
        if why is not None:
            skipped.append(Skipped(where=where, why=why))
        data = _bytes(file)
        if name in _PERSONAS and (text := _decoded(data, file).strip()):
            advice.append(_persona(where, text, spec))
        if why is not None:
            continue
        seen += [where.encode(), data]
        read.append(
            markdown.read(
                _decoded(data, file),
                where=where,
                written_at=int(file.stat().st_mtime * 1000),
                timezone=config.agents[owner.agent].timezone,
                mask=mask,
                of=owner.kind,
                day=markdown.day_of(file.name),
            )
        )
        if name in _RULES:
            advice.append(f"{where} is remembered, not obeyed. Rules that bind the agent stand in {spec}, under rules.")
    if not read and not advice:
        raise Unusable(f"There is nothing in {wanted.path} that can be brought in: {_TAKEN}.")
    material = together(read, format="markdown")
    material = replace(material, skipped=(*material.skipped, *skipped))
    return Found(material=material, advice=tuple(advice), digest=_digest(seen))


_TAKEN: Final = (
    "MEMORY.md, USER.md and daily notes (or a folder with them), result.json of Telegram Desktop, an export of Remora"
)


def _not_memory(name: str, where: str, kind: Ownership) -> str | None:
    """Why a file of a workspace is not read for memories; None where it is."""
    if name in _PERSONAS:
        return "it says who the agent is: see below"
    if name in _RULES:
        return None if kind == "agent" else "rules of an agent, no memory of anybody: --agent-wide takes them"
    within = [part.casefold() for part in Path(where).parts[:-1]]
    remembered = name in _MEMORY or markdown.day_of(name) is not None or bool(_FOLDERS & set(within))
    if remembered and name not in _MANUALS:
        return None
    return "no file in which memory is kept; name it itself to bring it in"


def _persona(where: str, text: str, spec: Path) -> str:
    body = "\n".join(f"  {line}".rstrip() for line in text[:_PERSONA].splitlines())
    return f"{where} is no memory. To give the agent this voice, put it into {spec}:\npersona: |\n{body}"


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder, without hidden ones and links. Raises `Unusable` when there are too many."""
    count = 0
    for file in folder.rglob("*"):
        inner = file.relative_to(folder)
        if any(part.startswith(".") or part == "node_modules" for part in inner.parts):
            continue
        if any((folder / part).is_symlink() for part in (inner, *inner.parents)) or not file.is_file():
            continue
        count += 1
        if count > _MOST_FILES:
            raise Unusable(f"There are more than {_MOST_FILES:,} files in {folder}: name the folder with the notes.")
        yield file


def _bytes(file: Path) -> bytes:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise Unusable(f"{file} is larger than {_MOST_BYTES // 1_000_000:,} MB: export it in parts.")
        return file.read_bytes()
    except OSError as exc:
        raise Unusable(f"Can't read {file}: {exc.strerror}.") from exc


def _decoded(data: bytes, file: Path) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8", "replace")


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
    """`platform:id` or `channel:id[:thread]` as its platform, id and thread."""
    first, _, rest = text.partition(":")
    reference, _, thread = rest.partition(":")
    named = {bot.id: bot.platform for bot in config.settings.channels.bots}
    platform = named.get(first, first)
    if not reference or platform not in ("console", "telegram", "discord"):
        raise Unusable(f"{option} {text}: write it as {example}; {first or 'this'} is no platform or channel here.")
    return platform, reference, thread


def _line(text: str) -> str:
    """One line of what anybody may have written, with nothing in it that a terminal would obey."""
    flat = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * _LINE])
    flat = " ".join(flat.split())
    return flat if len(flat) <= _LINE else f"{flat[: _LINE - 1]}…"


def _date(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000, UTC).strftime("%Y-%m-%d %H:%M")
