"""The memory that a process takes of the machine."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_PROGRAM = """
from pathlib import Path
from memory.child import trim

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

held = [bytes(2_000) for _ in range(50_000)]
last = held[-1]
full = resident()
del held
freed = resident()
trim()
print(full - freed, full - resident())
"""

_LARGE = """
from pathlib import Path
from memory.child import map_large_blocks

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

map_large_blocks()
for _ in range(2):
    held = b"x" * 12_000_000
    full = resident()
    del held
print(full - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep nothing")
def test_freed_memory_goes_back_to_the_system() -> None:
    """The newest block is still held, below which glibc keeps all the others."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    freed, trimmed = map(int, done.stdout.split())
    assert trimmed > 20_000 > freed  # of 24,400 pages


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep nothing")
def test_a_large_block_goes_back_at_once_the_second_time_too() -> None:
    """By then glibc takes its size for usual, and would keep it."""
    done = subprocess.run([sys.executable, "-c", _LARGE], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 2_900
