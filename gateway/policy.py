"""Who may speak. Whoever sits at the terminal of the machine may; platforms bring their own rules.

Invariant: nothing is stored of a message that is not admitted.
"""

from __future__ import annotations

from channels.base import Inbound


def admits(inbound: Inbound) -> bool:
    """Whether a message is taken: it comes from a known kind of person and is meant for the bot."""
    return inbound.addressed and bool(inbound.author_id)
