"""PLACEHOLDER - to be replaced by its author."""

from __future__ import annotations

from typing import Literal


def say(key: str, value: str, *, language: Literal["en", "zh"], to: Literal["you"]) -> str:
    return f"{key}: {value}"
