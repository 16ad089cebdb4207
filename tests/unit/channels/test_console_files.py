"""Files that are sent from the terminal: which one a line means, and what is wrong with one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from channels.base import ChannelError, TooLarge
from channels.console_complete import CommandCompleter
from channels.console_files import UnusableFile, dropped, is_attach, read, taken


@pytest.fixture
def cat(tmp_path: Path) -> Path:
    file = tmp_path / "my cat.png"
    file.write_bytes(b"\x89PNG\r\n\x1a\n")
    return file


def test_a_path_is_understood_as_people_and_terminals_write_it(cat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(cat.parent))
    escaped = str(cat).replace(" ", "\\ ")
    for written in (str(cat), f"'{cat}'", f'"{cat}"', escaped, cat.as_uri(), '"~/my cat.png"', "~/my cat.png"):
        words, sent = taken(f"/attach {written}")
        assert (words, sent.name, sent.kind, sent.media_type, sent.size) == ("", "my cat.png", "image", "image/png", 8)
        assert not sent.spoken and read(sent.reference, limit=8) == cat.read_bytes()
    for written in (f"'{cat}'", f'"{cat}" ', escaped, str(cat), cat.as_uri()):
        assert dropped(written) is not None


def test_words_behind_a_path_go_with_it(cat: Path) -> None:
    assert taken(f"/attach '{cat}'  who is this?")[0] == "who is this?"


@pytest.mark.parametrize(
    ("name", "kind", "spoken"), [("a.ogg", "audio", True), ("a.pdf", "file", False), ("a", "file", False)]
)
def test_a_file_is_what_its_name_says(name: str, kind: str, spoken: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    sent = taken(f"/attach {tmp_path / name}")[1]
    assert (sent.kind, sent.spoken) == (kind, spoken)


def test_what_is_wrong_is_told_with_the_path(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as large:
        large.truncate(20_000_001)
    for name, why in (
        ("missing", "There is no file"),
        (".", "is a folder"),
        ("pipe", "is no file that can be read"),
        ("large", "is too large: 20.0 MB"),
        ("n" * 5_000, "can't be read"),
        ("a\0b", "can't be read"),
        ("\udcff", "can't be read"),
    ):
        with pytest.raises(UnusableFile, match=why):
            taken(f"/attach {tmp_path / name}")
    for nothing in ("/attach", "/attach  ", "/attach '"):
        with pytest.raises(UnusableFile, match="Name a file"):
            taken(nothing)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_of_somebody_else_is_told(cat: Path) -> None:
    cat.chmod(0)
    with pytest.raises(UnusableFile, match="Permission denied"):
        taken(f"/attach {cat}")


def test_a_file_that_has_grown_or_gone_is_not_read(cat: Path) -> None:
    sent = taken(f"/attach {cat}")[1]
    with pytest.raises(TooLarge):
        read(sent.reference, limit=7)
    cat.unlink()
    with pytest.raises(ChannelError, match="any more"):
        read(sent.reference, limit=8)


@given(st.text(max_size=80))
def test_any_other_line_is_talk(text: str) -> None:
    assert dropped(text) is None and is_attach(text) == (text.split()[:1] == ["/attach"])


def test_tab_completes_commands_and_paths(cat: Path) -> None:
    completer = CommandCompleter({"/attach": "send a file", "/help": "what I can do"})

    def completed(typed: str) -> list[str]:
        return [one.text for one in completer.get_completions(Document(typed), CompleteEvent())]

    assert completed("/at") == ["/attach"]
    assert completed(f"/attach {cat.parent}/my") == [" cat.png"]
    assert completed(f"/attach '{cat.parent}/my") == [" cat.png"]
    assert completed("/attach /nowhere/at/all") == []
