"""The program at the pace of a test: `python -m tests.kit.paced serve --config …`.

The pace is in pace.json beside the configuration, as `keep` writes it; without that file it is the usual one.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from gateway.__main__ import main
from gateway.config.settings import WorkPace

_FILE: Final = "pace.json"


def keep(pace: WorkPace, folder: Path) -> None:
    """Writes the pace for the programs that are started with the configuration in `folder`."""
    file = folder / _FILE
    file.touch(mode=0o600)
    file.write_text(json.dumps(asdict(pace)))


def kept(folder: Path) -> WorkPace:
    """Returns the pace that was written there."""
    file = folder / _FILE
    return WorkPace(**json.loads(file.read_text())) if file.exists() else WorkPace()


if __name__ == "__main__":
    main(obj=kept(Path(sys.argv[sys.argv.index("--config") + 1]).parent))
