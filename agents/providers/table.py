"""The model servers that are known by name. Pure.

Any other server with OpenAI's API is `provider: openai` and its address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

#: The provider that answers without a model.
OFFLINE: Final = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownServer:
    """A server known by name.

    `variable` is the environment variable with its key; empty if it needs none. `model` is a model that is cheap, fast
    and calls tools; empty if it depends on the machine. `context` is that model's context in tokens. `slots`
    is the number of calls that the server works on at once; None if that is its own concern.
    """

    title: str
    base_url: str
    variable: str = ""
    model: str = ""
    context: int = 128_000
    slots: int | None = None

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""


#: The tokens that a model on one's own machine is given unless its context is configured.
LOCAL_CONTEXT = 32_000

KNOWN: Mapping[str, KnownServer] = {
    "openai": KnownServer(
        title="OpenAI", base_url="https://api.openai.com/v1", variable="OPENAI_API_KEY", model="gpt-4o-mini"
    ),
    "anthropic": KnownServer(
        title="Anthropic",
        base_url="https://api.anthropic.com/v1",
        variable="ANTHROPIC_API_KEY",
        model="claude-haiku-4-5",
        context=200_000,
    ),
    "gemini": KnownServer(
        title="Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        variable="GEMINI_API_KEY",
        model="gemini-2.5-flash",
        context=1_000_000,
    ),
    "openrouter": KnownServer(
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        variable="OPENROUTER_API_KEY",
        model="openai/gpt-4o-mini",
    ),
    "groq": KnownServer(
        title="Groq",
        base_url="https://api.groq.com/openai/v1",
        variable="GROQ_API_KEY",
        model="llama-3.3-70b-versatile",
    ),
    "mistral": KnownServer(
        title="Mistral",
        base_url="https://api.mistral.ai/v1",
        variable="MISTRAL_API_KEY",
        model="mistral-small-latest",
    ),
    "deepseek": KnownServer(
        title="DeepSeek",
        base_url="https://api.deepseek.com/v1",
        variable="DEEPSEEK_API_KEY",
        model="deepseek-chat",
        context=64_000,
    ),
    "ollama": KnownServer(title="Ollama", base_url="http://localhost:11434/v1", context=LOCAL_CONTEXT, slots=1),
    "lmstudio": KnownServer(title="LM Studio", base_url="http://localhost:1234/v1", context=LOCAL_CONTEXT, slots=1),
    "llamacpp": KnownServer(title="llama.cpp", base_url="http://localhost:8080/v1", context=LOCAL_CONTEXT, slots=1),
}
