"""A comparison of two revisions: in turns, by one bench code where that fits both, and with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import patience

ROOT = Path(__file__).parents[3]
AGAINST = ROOT / "bench" / "against.py"
_OURS = {**os.environ, "PYTHONPATH": str(ROOT)}
#: Bench code that measures a product, which here is one number.
_BENCH = """
import json
import gateway.{module} as product
print(json.dumps({{"sqlite": {{"p50_ms": product.COST * 2.0, "processor_ms": product.COST, "{name}_ms": 5.0}}}}))
"""


def _git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    return subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def _commit(folder: Path, *, module: str, cost: int, bench: str) -> None:
    for name in ("bench", "tests", "gateway"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "__init__.py").write_text("", "utf-8")
    for old in (folder / "gateway").glob("[a-z]*.py"):
        old.unlink()
    (folder / "gateway" / f"{module}.py").write_text(f"COST = {cost}\n", "utf-8")
    (folder / "bench" / "turn.py").write_text(bench, "utf-8")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", f"{cost}")


def _against(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(AGAINST), *arguments]
    return subprocess.run(command, cwd=folder, env=_OURS, capture_output=True, text=True, check=False)


def _row(output: str, figure: str) -> list[str]:
    return next(line.split()[1:] for line in output.splitlines() if line.split()[:1] == [figure])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "--quiet")
    return folder


def _left(repository: Path) -> int:
    return len(_git(repository, "worktree", "list").splitlines())


def test_the_bench_code_of_this_tree_measures_both_products(repository: Path) -> None:
    """An older bench may do less in a turn, and then a slower product looks faster."""
    _commit(repository, module="app", cost=10, bench=_BENCH.format(module="app", name="old"))
    _git(repository, "tag", "v1")
    _commit(repository, module="app", cost=30, bench=_BENCH.format(module="app", name="new"))
    done = _against(repository, "--pairs", "2")
    assert done.returncode == 0, done.stderr
    assert "this tree's bench code measures both" in done.stdout
    assert _row(done.stdout, "processor_ms") == ["10.00", "30.00", "3.00", "(3.00", "to", "3.00)"]
    assert _row(done.stdout, "p50_ms")[-3:] == ["by", "the", "clock"]
    assert _row(done.stdout, "new_ms")[:3] == ["5.00", "5.00", "1.00"]
    ways = [line.split(", ")[1] for line in done.stderr.splitlines()]
    assert ways == ["the other", "this tree", "the other", "this tree"]
    assert _left(repository) == 1


def test_a_product_that_the_bench_code_does_not_fit_is_measured_by_its_own(repository: Path) -> None:
    """Only figures that both have are compared, and the output says so."""
    _commit(repository, module="before", cost=10, bench=_BENCH.format(module="before", name="old"))
    (repository / "bench" / "scale.py").write_text(_BENCH.format(module="app", name="new"), "utf-8")
    _commit(repository, module="app", cost=5, bench=_BENCH.format(module="app", name="new"))
    done = _against(repository, "HEAD^", "--pairs", "1", "--what", "turn --turns 5 recall start")
    assert done.returncode == 0, done.stderr
    assert "(ModuleNotFoundError: No module named 'gateway.app'): each is measured by its own" in done.stdout
    assert _row(done.stdout, "processor_ms")[2] == "0.50"
    assert "old_ms" not in done.stdout and "new_ms" not in done.stdout
    assert "which has no bench.scale" in done.stdout
    assert "No module named bench.footprint" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_comparison_leaves_nothing_behind(
    repository: Path, number: signal.Signals, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    hanging = f"import pathlib, time\npathlib.Path({str(begun)!r}).write_text('')\ntime.sleep(600)\n"
    _commit(repository, module="app", cost=10, bench=hanging)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**_OURS, "TMPDIR": str(temporary)}
    command = [sys.executable, str(AGAINST), "HEAD"]
    with subprocess.Popen(
        command, cwd=repository, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        patience.wait_until(begun.exists)
        running.send_signal(number)
        assert running.wait(patience.SECONDS) == 130
    assert _left(repository) == 1
    assert list(temporary.iterdir()) == []


def test_without_an_earlier_tag_nothing_is_compared(repository: Path) -> None:
    """As in the shallow clone of a CI, which goes on."""
    _commit(repository, module="app", cost=10, bench="")
    done = _against(repository)
    assert (done.returncode, "no earlier tag is known" in done.stdout) == (0, True)
    unknown = _against(repository, "v9")
    assert (unknown.returncode, "v9 names no commit here" in unknown.stderr) == (1, True)
    assert "nothing is no measure" in _against(repository, "HEAD", "--what", "nothing").stderr
