"""/keys and /web: how a person's programs get in, and how the person gets onto the page.

Invariants: both are answered in private chats only. A key is shown once, in the answer to the command that made it; a
link to the page signs in once.
"""

from __future__ import annotations

import re
import secrets

from gateway.commands.call import Call, by_action, excerpt
from gateway.wording.texts import Texts
from memory.chat.edits import Edits
from memory.people.keyring import MOST_KEYS, ApiKey, KeyScope
from memory.people.keyring import SCOPES as KEY_SCOPES

#: The permissions of a key before its label: "read,write Claude Code".
_SCOPED = re.compile(rf"((?:{'|'.join(KEY_SCOPES)})(?:,(?:{'|'.join(KEY_SCOPES)}))*)\s+(.+)", re.DOTALL)


async def keys(call: Call) -> None:
    await by_action(call, {"": ("", _list), "make": (".+", _make), "revoke": ("[1-9][0-9]{0,9}", _revoke)})


def asked_for(text: str) -> tuple[str, tuple[KeyScope, ...]]:
    scoped = _SCOPED.fullmatch(text.strip())
    if scoped is None:
        return text.strip(), KEY_SCOPES
    named = scoped[1].split(",")
    return scoped[2], tuple(scope for scope in KEY_SCOPES if scope in named)


def told(texts: Texts, key: ApiKey) -> str:
    used = texts("keys.unused") if key.used_at is None else texts("keys.used", at=texts.moment(key.used_at))
    may = ", ".join(texts(f"keys.scope.{scope}") for scope in key.scopes)
    return texts("keys.line", number=key.id, label=excerpt(key.label), may=may, used=used)


async def _make(call: Call, text: str) -> None:
    (label, scopes), url = asked_for(text), call.roster.api
    if not url:
        await call.say(call.texts("keys.off"))
        return

    def make(edits: Edits) -> str:
        made = edits.keys.make(label, scopes)
        if made is None:
            return call.texts("keys.many", most=MOST_KEYS)
        key, secret = made
        return call.texts("keys.made", secret=secret, line=told(call.texts, key), url=url)

    await call.do(make)


async def _revoke(call: Call, number: str) -> None:
    await call.do(lambda edits: call.texts("keys.revoked" if edits.keys.revoke(int(number)) else "keys.none_such"))


async def _list(call: Call, _rest: str) -> None:
    made = await call.memory.keys.of(call.context)
    lines = [told(call.texts, key) for key in made] or [call.texts("keys.none")]
    await call.say("\n".join([*lines, call.texts("keys.how") if call.roster.api else call.texts("keys.off")]))


async def web(call: Call) -> None:
    inbound, roster = call.inbound, call.roster
    visits = roster.stores[roster.default].memory.visits
    page = call.agent.spec.name if call.agent.spec.name in roster.pages else next(iter(roster.pages), None)
    if inbound.platform == "web":
        await call.say(call.texts("web.here"))
    elif call.arguments.strip().lower() == "out":
        count = await visits.sign_out_everywhere(inbound.channel, inbound.author_id)
        await call.say(call.texts("web.out", count=count))
    elif page is None:
        await call.say(call.texts("web.off"))
    elif inbound.platform == "console":
        await call.say(call.texts("web.terminal"))
    else:
        code = secrets.token_urlsafe(32)
        until = await visits.open_code(
            code, channel=inbound.channel, platform=inbound.platform, user_id=inbound.author_id, agent=page
        )
        link = f"{roster.pages[page]}/in#{code}"
        await call.say(call.texts("web.link", link=link, until=call.texts.moment(until)))
