"""How a command begins: its configuration is found and read, and the logs are set up as that has them.

Invariant: what is wrong there ends the command before it has done anything, with all that is to be mended.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from gateway.cli.exits import EX_CANTCREAT, fail
from gateway.config import EX_CONFIG, Config, ConfigError, find, load

CONFIG = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Where config.yaml is (else $REMORA_CONFIG, …).",
)


def loaded(config_path: Path | None) -> Config:
    """The configuration at this path, or where one is found; a wrong one ends the command."""
    home = Path.home()
    try:
        return load(find(config_path, os.environ, Path.cwd(), home), os.environ, home)
    except ConfigError as exc:
        fail(str(exc), EX_CONFIG)


def set_up_logs(config: Config) -> None:
    """Set the logs up as configured; from here on also a crash is redacted."""
    from gateway import telemetry
    from memory.learn.redact import redact

    log = config.settings.log
    try:
        telemetry.configure(level=log.level, format=log.format, file=config.log_file, redact=redact)
    except telemetry.LogFileError as exc:
        fail(str(exc), EX_CANTCREAT)
    telemetry.log_crashes()
