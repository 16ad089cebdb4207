"""The languages: a folder of data each, and nothing beside it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import languages
from languages import LANGUAGES, has, part

PARTS = ("language", "texts", "talk", "facts", "times", "occasions", "claims", "wishes", "things")


def test_english_comes_first_and_each_language_has_every_part() -> None:
    assert LANGUAGES[:2] == ("en", "zh")
    assert [(code, name) for code in LANGUAGES for name in PARTS if not has(code, name)] == []
    assert len({part(code, "language")["name"] for code in LANGUAGES}) == len(LANGUAGES)


#: Speaks the seventh language and prints what came of it.
_TRY = """
import json
from datetime import date
from agents.spec import AgentSpec
from agents.offline.speech import speech
from gateway.commands.profile import NAMES
from gateway.wording.texts import Texts, spoken
from memory.learn.grounding import SaidText
from memory.learn.offline import patterns
from memory.learn.wishes import asks_for
from memory.text.sentences import parts
from memory.text.simplified import simplified
from memory.text.language import language_of
print(json.dumps([
    AgentSpec(name="a", language="nl").language, NAMES["nl"], Texts("nl")("yes"), spoken("nl-BE", "en"),
    language_of("dit is een fiets van mij"), Texts("nl").day_to_come(date(2026, 12, 4), date(2026, 12, 1)),
    bool(speech("nl", simplified, parts).texts), patterns.discloses("Ich wohne in Delft"),
    asks_for("kurze Antworten", SaidText(text="Antwoord voortaan kort.")),
]))
"""


def test_a_seventh_language_is_a_folder(tmp_path: Path) -> None:
    """Somebody who speaks it adds data and no Python."""
    copied = tmp_path / "languages"
    shutil.copytree(Path(languages.__file__).parent, copied)
    shutil.copytree(copied / "de", copied / "nl")
    (copied / "nl" / "language.yaml").write_text(
        'name: Nederlands\nenglish: Dutch\ndays: ["EEEE d MMMM", "EEEE d MMMM y"]\nwords: dit een van mij\nalone: hoi\n'
    )
    texts = copied / "nl" / "texts.yaml"
    texts.write_text(texts.read_text("utf-8").replace('"yes": "ja"', '"yes": "jawel"'), "utf-8")
    (copied / "nl" / "wishes.yaml").write_text(
        "orders: antwoord\nhenceforth: voortaan\ntalk: antwoord*\nmanners:\n  brief: kort*\n"
    )
    # The copy stands before the package on the path.
    root = Path(languages.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(root)!r}]\n{_TRY}"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["nl", "Nederlands", "jawel", "nl", "nl", "vrijdag 4 december", True, True, True]
