"""The platform as a process of its own."""

from __future__ import annotations

from tests.platforms import process
from tests.platforms.telegram.client import TOKEN
from tests.platforms.telegram.server import listening

if __name__ == "__main__":
    process.main("telegram", listening, token=TOKEN, model_ms=300)
