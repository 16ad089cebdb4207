"""Skills: folders with a SKILL.md that tells a model how to do something, read when its description fits.

The text is the operator's own, so it counts as instructions. Its front matter has `name` and `description`, one line
each; the description is always in sight, the rest only once the model reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field

from agents.tools import Tool, ToolError

FILE: Final = "SKILL.md"
#: The longest description and text of a skill, in characters.
_LONGEST_DESCRIPTION: Final = 500
_LONGEST: Final = 20_000
_FRONT: Final = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n(.*)\Z", re.DOTALL)


class UnusableSkill(Exception):
    """A skill can't be used. `str()` says which, why and what to do."""


class SkillArguments(BaseModel):
    name: str = Field(description="the name of the skill", min_length=1, max_length=64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Instructions for something, with the line by which a model knows when to read them."""

    name: str
    description: str
    text: str


def load(names: Iterable[str], folder: Path) -> tuple[Skill, ...]:
    return tuple(_read(name, folder / name / FILE) for name in names)


def tool(skills: Sequence[Skill]) -> Tool:
    listed = "\n".join(f"- {skill.name}: {skill.description}" for skill in skills)

    async def read(_n: int, _i: int, arguments: SkillArguments) -> str:
        found = next((skill for skill in skills if skill.name == arguments.name), None)
        if found is None:
            raise ToolError(f"There is no such skill. Known: {', '.join(skill.name for skill in skills)}.")
        return found.text

    return Tool(
        name="read_skill",
        description=f"How to do something well. Read the skill that fits before you begin:\n{listed}",
        arguments=SkillArguments,
        run=read,
        beside=True,
    )


def _read(name: str, file: Path) -> Skill:
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(_LONGEST + 1)
    except (OSError, UnicodeDecodeError) as exc:
        raise UnusableSkill(f"The skill {name} can't be read: {exc}") from exc
    front = _FRONT.match(text)
    lines = (line.partition(":") for line in (front[1] if front else "").splitlines())
    stated = {key: value.strip().strip("'\"") for key, _, value in lines}
    description = stated.get("description", "")
    if front is None or not description or len(description) > _LONGEST_DESCRIPTION or len(text) > _LONGEST:
        raise UnusableSkill(
            f"The skill {name} needs a {FILE} that begins with ---, name: and description: (at most"
            f" {_LONGEST_DESCRIPTION} characters, one line), --- and then its text (at most {_LONGEST} characters)."
        )
    if stated.get("name", name) != name:
        raise UnusableSkill(f"The skill in the folder {name} calls itself otherwise: give both the same name.")
    return Skill(name=name, description=description, text=front[2].strip())
