"""The command line's root: the commands of `gateway/cli/`, under one name."""

from __future__ import annotations

import gc
import os
import sys

from gateway import package_check

# Before the imports below, which would load another project's package of the same name.
if foreign := package_check.foreign():
    sys.stderr.write(f"{package_check.complaint(foreign)}\n")
    sys.exit(78)

import click

from gateway.cli import backups, channels, chat, doctor, init, jobs, keys, mcp, moves, status, transfers


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="remora")
def main() -> None:
    """Remora: a chat bot that remembers, and lets people see, correct and erase what it remembers."""
    # Loading makes hundreds of thousands of objects that stay; looking for garbage among them takes a tenth of a start.
    # `set_up_logs` ends this.
    gc.set_threshold(500_000)
    # Files that this process makes from now on belong to its user alone, also those that libraries make.
    os.umask(0o077)


for command in (
    init.init, chat.chat, chat.serve, chat.web, status.status, status.check, doctor.doctor,
    channels.channels, jobs.jobs, keys.keys, mcp.mcp, backups.backup, backups.restore, backups.erase_again,
    moves.move, transfers.import_, transfers.export,
):  # fmt: skip
    # Without it click cuts a summary at the end of the line.
    command.short_help = " ".join((command.help or "").partition("\n\n")[0].split())
    main.add_command(command)


if __name__ == "__main__":
    main()
