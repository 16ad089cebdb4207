"""A server that speaks the APIs of model vendors, with faults, for the tests that ask for it.

The plugin of its package would be loaded into every test process, which costs seconds each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock
    from llmock.testing import LLMockServer


@pytest.fixture(scope="session")
def llmock_server() -> Iterator[LLMockServer]:
    from llmock.testing import LLMockServer

    with LLMockServer() as server:
        yield server


@pytest.fixture
def llmock(llmock_server: LLMockServer, monkeypatch: pytest.MonkeyPatch) -> LLMock:
    """The server as new, with the addresses and keys of vendors in the environment pointing at it."""
    from llmock.pytest_plugin import LLMock

    handle = LLMock(llmock_server).reset()
    for name, value in handle.env().items():
        monkeypatch.setenv(name, value)
    return handle
