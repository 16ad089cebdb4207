"""`remora init`: makes the folder with a person's configuration."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--model", "name", metavar="NAME", help="The model, or none. Without this option you are asked.")
@click.option("--base-url", metavar="URL", help="The server of --model; by default that of Ollama or the vendor.")
@click.option("--key-env", metavar="VARIABLE", help="The environment variable with the key of --model.")
@click.option("--yes", is_flag=True, help="Take the default of every question.")
def init(folder: Path | None, name: str | None, base_url: str | None, key_env: str | None, yes: bool) -> None:
    """Set Remora up in FOLDER (default: ~/.config/remora), where no update touches it."""
    from gateway.cli import setting_up  # imported here, so that the help is printed at once

    setting_up.set_up(folder, name, base_url, key_env, yes=yes)
