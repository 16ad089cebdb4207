"""The command line's root: the commands of `gateway/cli/`, under one name."""

from __future__ import annotations

import click

from gateway.cli import channels, copies, jobs, standing, talk, transfers


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="remora")
def main() -> None:
    """Remora: a chat bot that remembers, and lets people see, correct and erase what it remembers."""


main.add_command(talk.chat)
main.add_command(talk.serve)
main.add_command(talk.replay)
main.add_command(standing.status)
main.add_command(standing.check)
main.add_command(channels.channels)
main.add_command(jobs.jobs)
main.add_command(copies.backup)
main.add_command(copies.restore)
main.add_command(transfers.import_)
main.add_command(transfers.export)


if __name__ == "__main__":
    main()
