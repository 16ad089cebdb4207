"""The command line's root: the commands of `gateway/cli/`, under one name."""

from __future__ import annotations

import gc
import os
import sys

from gateway import intact

# Before the imports below, which would load another project's package of the same name.
if foreign := intact.foreign():
    sys.stderr.write(f"{intact.complaint(foreign)}\n")
    sys.exit(78)

import click

from gateway.cli import backups, channels, chat, doctor, init, jobs, keys, mcp, moves, status, transfers


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="remora")
def main() -> None:
    """Remora: a chat bot that remembers, and lets people see, correct and erase what it remembers."""
    # Loading makes hundreds of thousands of objects that stay; collecting among them takes a tenth of a start.
    gc.set_threshold(20_000)
    # Files that this process makes from now on belong to its user alone, also those that libraries make.
    os.umask(0o077)


main.add_command(init.init)
main.add_command(chat.chat)
main.add_command(chat.serve)
main.add_command(chat.web)
main.add_command(chat.replay)
main.add_command(status.status)
main.add_command(status.check)
main.add_command(doctor.doctor)
main.add_command(channels.channels)
main.add_command(jobs.jobs)
main.add_command(keys.keys)
main.add_command(mcp.mcp)
main.add_command(backups.backup)
main.add_command(backups.restore)
main.add_command(backups.erase_again)
main.add_command(moves.move)
main.add_command(transfers.import_)
main.add_command(transfers.export)


if __name__ == "__main__":
    main()
