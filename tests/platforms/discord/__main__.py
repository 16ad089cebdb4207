"""The platform as a process of its own."""

from __future__ import annotations

from tests.platforms import process
from tests.platforms.discord.client import TOKEN
from tests.platforms.discord.server import listening

if __name__ == "__main__":
    process.main("discord", listening, token=TOKEN, model_ms=None)
