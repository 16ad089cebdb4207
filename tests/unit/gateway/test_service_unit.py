"""The unit for systemd: what systemd itself says of it, and that the manual and the program agree with it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.start import EX_CONFIG, EX_DATAERR
from tests.kit.patience import SECONDS
from tests.kit.served import ROOT

UNIT = (ROOT / "docs" / "remora.service").read_text()
VERIFY = shutil.which("systemd-analyze")


@pytest.mark.skipif(VERIFY is None, reason="systemd is not installed")
@pytest.mark.parametrize(("change", "well"), [(("", ""), True), (("Restart=on-failure", "Restart=sometimes"), False)])
def test_systemd_takes_it_as_it_is(tmp_path: Path, change: tuple[str, str], well: bool) -> None:
    """On this machine there is neither its user nor its folder."""
    unit = tmp_path / "remora.service"
    here = UNIT.replace("/srv/remora/.venv/bin/remora", sys.executable).replace("User=remora", "User=root")
    unit.write_text(here.replace(*change).replace("/srv/remora", str(tmp_path)))
    done = subprocess.run(
        [str(VERIFY), "verify", "--man=no", "--recursive-errors=no", unit],
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    said = [line for line in (done.stdout + done.stderr).splitlines() if unit.name in line]
    assert (said == []) is well, said


def test_it_does_not_start_again_what_only_the_operator_can_mend() -> None:
    """A loop of starts would fill the log and help nobody."""
    (codes,) = re.findall(r"^RestartPreventExitStatus=(.*)$", UNIT, re.MULTILINE)
    assert set(codes.split()) == {str(EX_DATAERR), str(EX_CONFIG)}
    manual = (ROOT / "docs" / "operation.md").read_text()
    assert "remora.service" in manual and "ExecStart=" not in manual
