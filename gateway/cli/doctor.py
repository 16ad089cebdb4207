"""`remora doctor`: examines the installation and says for each part that it is well, or what to do.

Invariants: nothing changes. Exits with 0 when green or
yellow, 1 when red, 78 when the configuration can't be read.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.start import CONFIG, EX_RED, ending, loaded

if TYPE_CHECKING:
    from gateway.cli.examination import Diagnosis
    from gateway.config.loading import Config

_MARKS = {"ok": "ok", "warning": "!!", "trouble": "XX"}


@click.command()
@CONFIG
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--no-network", is_flag=True, help="Ask no model and no platform.")
def doctor(config_path: Path | None, as_json: bool, no_network: bool) -> None:
    """Examine this installation: each line is ok, or says what to do. Exits with 1 if something is in trouble."""
    config = loaded(config_path)
    with ending(stopped="Stopped. Nothing was changed."):
        asyncio.run(_examined(config, as_json=as_json, outside=not no_network))


async def _examined(config: Config, *, as_json: bool, outside: bool) -> None:
    from gateway.cli import examination

    findings: list[Diagnosis] = []
    waits = not as_json and sys.stderr.isatty()

    def found(finding: Diagnosis) -> None:
        findings.append(finding)
        if waits:
            click.echo("\r\033[K", nl=False, err=True)
        if not as_json:
            click.echo(told(finding))
        if waits:
            click.echo("Still examining ...", nl=False, err=True)

    async for finding in examination.examine(config, outside=outside):
        found(finding)
    found(await examination.probe())
    if waits:
        click.echo("\r\033[K", nl=False, err=True)
    status = examination.status(findings)
    if as_json:
        click.echo(json.dumps({"status": status, "findings": [asdict(one) for one in findings]}, ensure_ascii=False))
    else:
        click.echo(f"\n{_SUMMARY[status]}")
    if status == "red":
        sys.exit(EX_RED)


_SUMMARY = {
    "green": "All is well.",
    "yellow": "It works; look at the lines with !!.",
    "red": "Something is in trouble: do what the lines with XX say.",
}


def told(finding: Diagnosis) -> str:
    line = f"{_MARKS[finding.state]}  {finding.about}: {finding.text}"
    return f"{line}\n      {finding.fix}" if finding.fix else line
