"""docs/configuration.md, made from the models and the comments of the shipped files.

`python -m bench.options > docs/configuration.md` makes it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agents.spec import AgentSpec, PortionOfDay
from gateway.config.explaining import bare, rule_of
from gateway.config.loading import reference
from gateway.config.settings import AnyBot, KnownBot, ModelServer, Settings
from gateway.config.strict_yaml import KeyPath, key_text

_HEAD: Final = """\
# Configuration

This page is made from the models that check the files (`make docs`), and a test holds it to them. `config.yaml` in the
source tree and `agents/assistant.yaml` show the same options as files; your own files need only what differs.
`remora check` names each mistake with its line.
[Running it](operation.md#changing-the-configuration-while-it-runs) says what is taken up without a restart.

`[]` stands for each item of a list, and `*` for each section that has the option: each kind of bot, each portion of
`allowance`. `SERVER` is `transcriber`, `embedding` or `rerank`. Options without a default are needed where their
section is written.
"""
#: A line of a shipped file, also within an example behind `#`: its option, and the comment after its value.
_LINE: Final = re.compile(r"(?P<lead>[\s#-]*)(?P<name>[a-z_]+):(?:\s(?:.*?\s)??#\s*(?P<comment>.*)|\s.*)?")

#: Sections that others are made of, and the places where their options stand.
_SHARED: Final[dict[type[BaseModel], str]] = {
    AnyBot: "channels.*[]",
    KnownBot: "channels.*[]",
    ModelServer: "SERVER",
    PortionOfDay: "allowance.*",
}


def markdown() -> str:
    """Returns the page."""
    agent = Path(str(resources.files("agents"))) / "assistant.yaml"
    parts = [_HEAD]
    for title, model, file in (("config.yaml", Settings, reference()), ("An agent's file", AgentSpec, agent)):
        comments = _comments(file.read_text("utf-8"))
        rows: dict[str, list[str]] = {"": []}
        again: dict[str, list[str]] = {}
        for path, field, name, owner in _named(model):
            part = str(path[0]) if _section(model.model_fields[str(path[0])]) else ""
            table = rows.setdefault(part, [])
            if name:
                own = (owner, path[-1:]) if owner in _SHARED else (model, path)
                table.append(_row(*own, field, name, _comment(comments, path)))
            elif owner is ModelServer:
                again.setdefault(part, []).append(f"`{part}.{path[-1]}`")
        parts.append(f"## {title}\n")
        for part, table in rows.items():
            about = _about(model.model_fields[part], comments.get(part, "")) if part else ""
            about += f". Also {', '.join(again[part])}, as above." if part in again else ""
            parts += [f"### `{part}`\n", f"{about[:1].upper()}{about[1:]}\n"] if part else []
            parts += ["| option | default | must be | |", "|---|---|---|---|", *table, ""] if table else []
    return "\n".join(parts)


def _named(model: type[BaseModel]) -> Iterator[tuple[KeyPath, FieldInfo, str, type[BaseModel]]]:
    """Yields the options with the names under which they are listed, and the models that define them.

    What several sections share is listed once: the name is empty where it comes again. It is so for a section that has
    a heading, too.
    """
    listed: set[str] = set()
    for path, own in _options(model, ()):
        field, name = own, key_text(path).replace("[0]", "[]")
        owner = rule_of(model, path[:-1])[0] if path[:-1] else model
        for shared, place in _SHARED.items():
            if issubclass(owner, shared) and path[-1] in shared.model_fields:
                owner, name, field = shared, f"{place}.{path[-1]}", shared.model_fields[str(path[-1])]
                break
        yield path, field, "" if name in listed or (len(path) == 1 and _section(field)) else name, owner
        listed.add(name)


def _options(model: type[BaseModel], before: KeyPath) -> Iterator[tuple[KeyPath, FieldInfo]]:
    """Yields the options of a model and those within them; the options of a section, not the section itself."""
    for name, field in model.model_fields.items():
        path, section = (*before, name), _section(field)
        listed = get_origin(bare(field.annotation)) is tuple
        if section is None or listed or NoneType in get_args(field.annotation):
            yield path, field
        if section is not None and path != ("background", "models"):  # which are those of `models`
            yield from _options(section, (*path, 0) if listed else path)


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """Returns the model of an option that is a section, or a list of sections."""
    inside = bare(field.annotation)
    inside = bare(get_args(inside)[0]) if get_origin(inside) is tuple else inside
    return inside if isinstance(inside, type) and issubclass(inside, BaseModel) else None


def _comment(comments: dict[str, str], path: KeyPath) -> str:
    return comments.get(".".join(str(step) for step in path if step != 0), "")


def _about(field: FieldInfo, comment: str) -> str:
    """Returns what an option is for: its comment, else what its section is."""
    section = _section(field)
    return comment or (" ".join((section.__doc__ or "").partition("\n\n")[0].split()) if section else "")


def _row(model: type[BaseModel], path: KeyPath, field: FieldInfo, name: str, comment: str) -> str:
    inside, words, _ = rule_of(model, path)
    if get_origin(inside) is tuple:
        inside, words, _ = rule_of(model, (*path, 0))
        words = f"a list; each item {words.partition(':')[0]}"
    elif isinstance(inside, type) and issubclass(inside, BaseModel):
        words = "a section"
    null = "null, or " if NoneType in get_args(field.annotation) else ""
    cells = (f"`{name}`", _default(field), null + words, _about(field, comment))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    value: Any = field.get_default(call_default_factory=True, validated_data={})
    if hasattr(value, "get_secret_value"):
        value = value.get_secret_value()
    text = json.dumps(value, ensure_ascii=False).removesuffix(".0")
    return f"`{text}`" if len(text) < 40 else "see the file"


def _comments(text: str) -> dict[str, str]:
    """Returns the comment behind each option of a shipped file."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    last, goes_on = "", 0  # the option before, and where its comment stands
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            if goes_on > 0 and line[goes_on - 2 : goes_on] == "# " and not line[: goes_on - 2].strip("# "):
                found[last] += f" {line[goes_on:]}"
            continue
        # An example stands two columns to the right of its option, behind the mark of a comment.
        column = len(match["lead"]) - 2 * match["lead"].count("#")
        above = [*((at, one) for at, one in above if at < column), (column, match["name"])]
        last, goes_on = ".".join(one for _, one in above), match.start("comment")
        found[last] = found.get(last) or match["comment"] or ""
    return found


if __name__ == "__main__":
    sys.stdout.write(markdown())
