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
from typing import Any, Final, TypeAlias, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agents.spec import AgentSpec, PortionOfDay
from gateway.config.loading import bare, reference, rule_of
from gateway.config.settings import AnyBot, KnownBot, Settings
from gateway.config.strict_yaml import KeyPath, key_text

_HEAD: Final = """\
# Configuration

This page is made from the models that check the files (`make docs`), and a test holds it to them. `config.yaml` in the
source tree and `agents/assistant.yaml` show the same options as files; your own files need only what differs.
`remora check` names each mistake with its line.
[Running it](operation.md#changing-the-configuration-while-it-runs) says what is taken up without a restart.

`[]` stands for each item of a list, and `*` for each section that has the option: each kind of bot, each portion of
`allowance`. Options without a default are needed where their section is written.
"""
#: A line of a shipped file, also within an example behind `#`: its option, and the comment after its value.
_LINE: Final = re.compile(r"(?P<lead>[\s#-]*)(?P<name>[a-z_]+):(?:\s(?:.*?\s)??#\s*(?P<comment>.*)|\s.*)?")

#: Sections that others are made of, and the places where their options stand.
_SHARED: Final[dict[type[BaseModel], str]] = {
    AnyBot: "channels.*[]",
    KnownBot: "channels.*[]",
    PortionOfDay: "allowance.*",
}
#: An option's default, rule and description.
_Cells: TypeAlias = tuple[str, str, str]


def markdown() -> str:
    """Returns the page."""
    agent = Path(str(resources.files("agents"))) / "assistant.yaml"
    parts = [_HEAD]
    for title, model, file in (("config.yaml", Settings, reference()), ("An agent's file", AgentSpec, agent)):
        comments = _comments(file.read_text("utf-8"))
        rows: dict[str, list[str]] = {"": []}
        for path, name, cells in _named(model, comments):
            part = str(path[0]) if _section(model.model_fields[str(path[0])]) else ""
            rows.setdefault(part, []).append(_row(f"`{name}`", *cells))
        parts.append(f"## {title}\n")
        for part, table in rows.items():
            about = _about(model.model_fields[part], comments.get(part, "")) if part else ""
            parts += [f"### `{part}`\n", f"{about[:1].upper()}{about[1:]}\n"] if part else []
            parts += ["| option | default | must be | |", "|---|---|---|---|", *table, ""]
    return "\n".join(parts)


def _named(model: type[BaseModel], comments: dict[str, str]) -> Iterator[tuple[KeyPath, str, _Cells]]:
    """Yields the options with the names under which they are listed, and what is said of them.

    An option of several sections is listed once, unless its default, rule or description differ between them. Of a
    section that has a heading only the default null is listed.
    """
    options = [
        (path, _cells(model, path, field, comments))
        for path, field in _options(model, ())
        if len(path) > 1 or not _section(field) or NoneType in get_args(field.annotation)
    ]
    alike: dict[str, set[_Cells]] = {}
    for path, cells in options:
        alike.setdefault(_shared(model, path), set()).add(cells)
    listed: set[str] = set()
    for path, cells in options:
        shared = _shared(model, path)
        name = shared if len(alike[shared]) == 1 else _spelled(path)
        if name not in listed:
            yield path, name, cells
        listed.add(name)


def _shared(model: type[BaseModel], path: KeyPath) -> str:
    """Returns the option's name in all sections that have it."""
    owner = rule_of(model, path[:-1])[0] if path[:-1] else model
    for section, place in _SHARED.items():
        if issubclass(owner, section) and path[-1] in section.model_fields:
            return f"{place}.{path[-1]}"
    return _spelled(path)


def _spelled(path: KeyPath) -> str:
    return key_text(path).replace("[0]", "[]")


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


def _cells(model: type[BaseModel], path: KeyPath, field: FieldInfo, comments: dict[str, str]) -> _Cells:
    inside, words, _ = rule_of(model, path)
    if get_origin(inside) is tuple:
        inside, words, _ = rule_of(model, (*path, 0))
        words = f"a list; each item {words.partition(': ')[0]}"
    elif isinstance(inside, type) and issubclass(inside, BaseModel):
        words = "a section"
    null = "null, or " if NoneType in get_args(field.annotation) else ""
    return _default(field), null + words, _about(field, _comment(comments, path))


def _row(*cells: str) -> str:
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
