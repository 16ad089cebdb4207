"""Starts processes for native code that reads strangers' words, and limits the resources of a process from within.

Invariants: such a process gets only the variables of our environment that it needs to find its libraries, so no key or
token; of our descriptors it gets only its pipes.
"""

from __future__ import annotations

import ctypes
import os
import sys
from importlib import import_module

#: The variables of the environment that a process may need to find its own libraries.
_NEEDED_TO_START = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
#: The numbers of glibc's parameters (mallopt(3)).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def command(module: str) -> tuple[str, ...]:
    """Returns the command that runs a module of ours, with nothing taken from the folder it is started in."""
    return (sys.executable, "-P", "-m", module)


def environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _NEEDED_TO_START if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}


def limit(name: str, most: int) -> None:
    """Sets a limit of this process, such as `RLIMIT_AS`, if the system has it and it is not lower already."""
    try:
        resource = import_module("resource")
        resource.setrlimit(getattr(resource, name), (most, most))
    except (ImportError, AttributeError, ValueError, OSError):  # Windows has none, macOS none of memory
        return


def map_large_blocks() -> None:
    """Makes glibc give a freed block of 1 MB or more back to the system at once.

    It does so of its own until a larger one is freed: from then on it keeps blocks of that size for the next ones, in
    each thread apart, so that a file which passes through leaves some times its size behind.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, 1_000_000)
        # As glibc does of its own: otherwise small blocks at the heap's end would go back and forth.
        libc.mallopt(_M_TRIM_THRESHOLD, 2_000_000)


def trim() -> None:
    """Returns freed memory of this process to the system. glibc keeps it otherwise; other C libraries do so themselves.

    Takes some milliseconds, in which other threads run unless they ask for memory.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
