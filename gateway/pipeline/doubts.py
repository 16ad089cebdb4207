"""The question which of two memories holds."""

from __future__ import annotations

from channels.base import Channel
from gateway.pipeline.delivery import pieces
from gateway.pipeline.questions import UNCLEAR, buttons
from gateway.wording import phrases
from gateway.wording.texts import Texts
from memory.context import Context
from memory.service import Service
from memory.store.memories import Memory

#: Characters shown of a memory.
_LINE = 200


async def ask(memory: Service, context: Context, texts: Texts, channel: Channel | None) -> bool:
    """Asks the speaker about the next doubt that waits for them here. Returns False if there is none."""

    def line(one: Memory) -> str:
        said = " ".join(phrases.tell(one, context, language=texts.language).split())
        cut = said if len(said) <= _LINE else f"{said[: _LINE - 1]}…"
        return f"{cut} ({texts.date(one.valid_from)})"

    # A plain "yes" tells nothing, so it takes no choice.
    return await memory.doubts.ask(
        context,
        UNCLEAR,
        lambda doubt, question: pieces(
            channel,
            texts("doubt.ask", older=line(doubt.older), newer=line(doubt.newer)),
            buttons=buttons(question, texts, alone=True),
        ),
    )
