"""A provider that another package brings: whatever it raises is a failed call, after which the chain goes on."""

from __future__ import annotations

from agents.llm import BadCompletion, Completion, ModelError, OnText, Provider, Request


class OutsideProvider:
    """Implements `agents.llm.Provider` over a provider that may break its protocol."""

    def __init__(self, provider: Provider, name: str) -> None:
        self._provider = provider
        self.name = name

    async def complete(self, request: Request, on_text: OnText | None = None) -> Completion:
        try:
            completion = await self._provider.complete(request, on_text)
        except ModelError:
            raise
        # A boundary: a stranger's code may raise anything.
        except Exception as exc:
            raise BadCompletion(f"{self.name}: its package failed: {type(exc).__name__}: {exc}") from exc
        if not isinstance(completion, Completion):
            raise BadCompletion(f"{self.name}: its package answered with {type(completion).__name__}, no Completion.")
        return completion

    async def aclose(self) -> None:
        await self._provider.aclose()
