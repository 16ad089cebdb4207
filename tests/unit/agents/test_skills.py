"""Skills: what of a SKILL.md is read, and when it can't be used."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agents import skills


def written(folder: Path, text: str, name: str = "cake") -> Path:
    (folder / name).mkdir()
    (folder / name / skills.FILE).write_text(text, "utf-8")
    return folder


def test_a_skill_is_its_front_matter_and_its_text(tmp_path: Path) -> None:
    """Other fields of the front matter belong to other programs."""
    text = "---\nname: cake\nlicense: MIT: free\ndescription:   'How to bake: slowly'  \n---\n\nTake flour.\n"
    (skill,) = skills.load(["cake"], written(tmp_path, text))
    assert skill == skills.Skill(name="cake", description="How to bake: slowly", text="Take flour.")


@pytest.mark.parametrize(
    "text",
    [
        "", "---\nname: cake\n---\nx", "---\ndescription: x\n", "name: cake\ndescription: x\n---\nx",
        "---\ndescription: " + "x" * 501 + "\n---\nx", "---\ndescription: x\n---\n" + "x" * 20_000,
    ],
)  # fmt: skip
def test_a_skill_that_lacks_something_says_what_it_needs(tmp_path: Path, text: str) -> None:
    with pytest.raises(skills.UnusableSkill, match=r"The skill cake needs a SKILL\.md"):
        skills.load(["cake"], written(tmp_path, text))


def test_a_skill_under_another_name_is_refused(tmp_path: Path) -> None:
    """The agent's file names the folder, a model the skill."""
    with pytest.raises(skills.UnusableSkill, match="give both the same name"):
        skills.load(["cake"], written(tmp_path, "---\nname: pie\ndescription: x\n---\nx"))


def test_a_file_of_any_length_is_not_read_whole(tmp_path: Path) -> None:
    """Nor does a line of blanks take more than its length."""
    text = "---\ndescription: x" + " " * 19_000 + "x\n---\n"
    written(tmp_path, text)
    with (tmp_path / "cake" / skills.FILE).open("ab") as file:
        file.truncate(1_000_000_000)  # a file with a hole, which takes no room
    began = time.thread_time()
    with pytest.raises(skills.UnusableSkill, match="at most 20000 characters"):
        skills.load(["cake"], tmp_path)
    assert time.thread_time() - began < 0.5
