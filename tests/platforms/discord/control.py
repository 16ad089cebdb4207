"""The test's side of the platform: each action of `Control`, and all there is to see.

Invariants: an action that can't be done says why and changes nothing; what is shown here is the world as it stands, with
what the bot asked for beside what became of it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.platforms import control as shared
from tests.platforms.control import Action, Wrong
from tests.platforms.discord import people
from tests.platforms.discord.interactions import COMPLETION
from tests.platforms.discord.limits import Rate
from tests.platforms.discord.model import JSON, Channel, Interaction, Message, Refused
from tests.platforms.discord.world import World

if TYPE_CHECKING:
    from tests.platforms.discord.server import Account, Platform


async def act(platform: Platform, token: str, action: str, fields: JSON) -> JSON:
    """Do an action. Raises `Wrong`."""
    try:
        answer = await shared.act(platform, ACTIONS, token, action, fields)
    except Refused as refused:
        raise Wrong(str(refused)) from refused
    platform.accounts[token].pulse.beat()
    return answer


def _bot(_platform: Platform, account: Account, *, reads_messages: bool | None = None, name: str | None = None) -> None:
    if reads_messages is not None:
        account.world.reads_messages = reads_messages
    if name is not None:
        account.world.me.name = name


def _gateway(platform: Platform, _account: Account, **terms: Any) -> None:
    for name, value in terms.items():
        if not hasattr(platform.terms, name):
            raise Wrong(f"the gateway has no {name}")
        setattr(platform.terms, name, value)


def _drop(_platform: Platform, account: Account, *, resumable: bool, code: int | None = None) -> JSON:
    return {"dropped": account.gateway.drop(resumable=resumable, code=code)}


def _event(_platform: Platform, account: Account, *, name: str, data: JSON) -> None:
    account.gateway.tell(name, data, 0)


def _limit(
    _platform: Platform,
    account: Account,
    *,
    method: str,
    count: int | None = None,
    per: float,
    retry_after: float | None = None,
) -> None:
    if count is None:
        account.limits.rates.pop(method, None)
    else:
        account.limits.rates[method] = Rate(count=count, per=per, retry_after=retry_after)


def _rules(_platform: Platform, account: Account, **rules: Any) -> None:
    """See `Control.rules`."""
    for name, value in rules.items():
        if name not in ("create_limit", "create_status", "answer_seconds", "nonce_seconds"):
            raise Wrong(f"there is no rule {name}")
        setattr(account.world, name, value)


def _script_model(
    platform: Platform, _account: Account, *, answers: Mapping[str, str] | None = None, ms: float | None = None
) -> None:
    if platform.chat is None:
        raise Wrong("there is no chat model: ask for one at the start with model_ms")
    if answers is not None:
        platform.chat.model.answers = answers
    if ms is not None:
        platform.chat.model.ms = ms


def _state(platform: Platform, account: Account) -> JSON:
    """`channels` by id (as text), with all messages in the order in which they came; `bot_messages`, those of the bot
    out of all channels, likewise; `requests` are counts by method; `unanswered` are sends and edits that got no true
    answer (`effect` tells whether they happened); `kills` with the sends that were then open; `violations`, see
    `Control.violations`; `gateway` counts; `interactions` by id; `commands`, `puts` and `creates` by "global" or guild;
    `typing`, the channels in which it was shown; `marks`, its reactions; `deduplicated`, sends that a nonce made harmless; `model`.
    """
    world, ledger, gateway = account.world, account.ledger, account.gateway
    channels = {str(one.id): _channel_state(world, one) for one in world.channels.values()}
    said = [message for place in channels.values() for message in place["messages"] if message["by_bot"]]
    return {
        "channels": channels,
        "bot_messages": sorted(said, key=lambda message: int(message["id"])),
        "requests": dict(ledger.counts),
        "unanswered": ledger.unanswered,
        "kills": ledger.kills,
        "violations": world.violations + account.limits.violations,
        "gateway": {"identifies": gateway.identifies, "resumes": gateway.resumes, "invalid": gateway.invalid},
        "interactions": {str(one.id): _interaction_state(one) for one in world.interactions.values()},
        "commands": {_named(scope): commands for scope, commands in world.commands.items()},
        "puts": {_named(scope): count for scope, count in world.puts.items()},
        "creates": {_named(scope): count for scope, count in world.creates.items()},
        "guilds": {
            str(one.id): {"name": one.name, "role": one.role, "gone": one.gone} for one in world.guilds.values()
        },
        "typing": world.typing,
        "marks": world.marks,
        "deduplicated": world.deduplicated,
        "model": None if platform.chat is None else platform.chat.model.state(),
    }


def _channel_state(world: World, place: Channel) -> JSON:
    facts = ("type", "name", "guild", "parent", "owner", "recipient", "archived", "locked", "deleted")
    told = {name: getattr(place, name) for name in facts}
    return {**told, "messages": [_message_state(world, one) for one in place.messages.values()]}


def _message_state(world: World, message: Message) -> JSON:
    return {
        **world.message_wire(message),
        "by_bot": message.author is world.me,
        "deleted": message.deleted,
        "edits": message.edits,
        "only_for": message.only_for,
        "loading": message.loading,
        "nonce": message.nonce,
        "asked": message.asked,
    }


def _interaction_state(one: Interaction) -> JSON:
    facts = ("kind", "user", "channel", "data", "message", "response", "responded_after", "ephemeral", "original")
    return {name: getattr(one, name) for name in (*facts, "form", "choices", "followups", "token")}


def _seen(_platform: Platform, account: Account, *, channel: int, user: int | None = None) -> JSON:
    """Returns what stands in a channel for a person (or for all), in order."""
    world = account.world
    place = people._channel(world, channel)
    there = sorted(place.messages.values(), key=lambda one: one.id)
    shown = [one for one in there if not one.deleted and not one.loading and one.only_for in (None, user)]
    return {"seen": [_seen_message(world, one) for one in shown]}


def _files(_platform: Platform, account: Account, *, channel: int, user: int | None = None) -> JSON:
    """The files of the bot's messages in a channel that a person (or all) can see, in order; bytes in base64."""
    place = people._channel(account.world, channel)
    there = sorted(place.messages.values(), key=lambda one: one.id)
    shown = [
        one for one in there if not one.deleted and one.author is account.world.me and one.only_for in (None, user)
    ]
    return {"files": [[file.name, base64.b64encode(file.data).decode()] for one in shown for file in one.files]}


def _seen_message(world: World, one: Message) -> JSON:
    facts = {"who": one.author.name, "user": one.author.id, "by_bot": one.author is world.me}
    return {**facts, "text": one.content, "id": one.id, "ephemeral": one.only_for is not None}


#: What a test can wait for. `bot_messages`: so many undeleted messages of the bot, ephemeral ones too, stand in `channel`
#: (or anywhere); with `text`, so many (default one) that contain it. `method`: it was called `count` times. `connected`: a
#: session has a connection. `delivered`: every event is written. `responded`: this interaction had its callback;
#: `answered`: and its person sees more than that something is being made. `idle`: no request for so many seconds, none
#: open.
_WANTED = {
    "channel", "bot_messages", "text", "method", "count", "connected", "identifies", "resumes", "delivered",
    "responded", "answered", "idle",
}  # fmt: skip


async def _wait(platform: Platform, account: Account, *, timeout: float, **wanted: Any) -> JSON:
    if unknown := wanted.keys() - _WANTED:
        raise Wrong(f"nobody can wait for {unknown}")
    return await shared.wait(
        account.pulse.wait,
        lambda: _missing(platform, account, wanted),
        lambda: account.ledger.last_other,
        timeout=timeout,
        idle=wanted.get("idle", 0),
    )


def _missing(platform: Platform, account: Account, wanted: JSON) -> str:
    """Returns what does not hold yet, in words; empty when all does."""
    world, ledger, gateway = account.world, account.ledger, account.gateway
    lacks: list[str] = []
    if "text" in wanted or "bot_messages" in wanted:
        lacks += _lacking_messages(world, wanted)
    if "method" in wanted:
        met, least = ledger.counts[wanted["method"]], wanted.get("count", 1)
        if met < least:
            lacks.append(f"{wanted['method']} was called {met} of {least} times")
    if "connected" in wanted and gateway.connected != wanted["connected"]:
        lacks.append("a gateway connection is open" if gateway.connected else "no gateway connection is open")
    for name in ("identifies", "resumes"):
        if name in wanted and getattr(gateway, name) < wanted[name]:
            lacks.append(f"{getattr(gateway, name)} of {wanted[name]} {name}")
    if wanted.get("delivered") and not gateway.written:
        lacks.append("events are not written yet")
    if "responded" in wanted and world.interactions[wanted["responded"]].response is None:
        lacks.append(f"the interaction {wanted['responded']} has no callback")
    if "answered" in wanted and not _answered(world, world.interactions[wanted["answered"]]):
        lacks.append(f"the interaction {wanted['answered']} is not answered")
    if "idle" in wanted:
        quiet = platform.now() - ledger.last_other
        busy = [entry.method for entry in ledger.open.values()]
        busy += ["model"] * (0 if platform.chat is None else platform.chat.open)
        if quiet < wanted["idle"] or busy:
            lacks.append(f"quiet for {quiet:.1f} s; open: {busy}")
    return "; ".join(lacks)


def _lacking_messages(world: World, wanted: JSON) -> list[str]:
    channel, text = wanted.get("channel"), wanted.get("text")
    said = [
        message.content
        for place in world.channels.values()
        if channel in (None, place.id)
        for message in place.messages.values()
        if message.author is world.me
        and not (message.deleted or message.loading)
        and (text is None or text in message.content)
    ]
    least = wanted.get("bot_messages", 1)
    if len(said) >= least:
        return []
    return [f"{len(said)} of {least} messages of the bot{f' with {text!r}' if text else ''}: {said[-5:]}"]


def _answered(world: World, one: Interaction) -> bool:
    """Whether a person has more than the sign that something is being made."""
    if one.response is None or one.original is None:
        return one.response is not None and (one.kind == COMPLETION or one.form is not None)
    return not world.channels[one.channel].messages[one.original].loading


def _reset(platform: Platform, account: Account) -> None:
    platform.reset(account.token)


def _named(scope: int | None) -> str:
    return "global" if scope is None else str(scope)


ACTIONS: Mapping[str, Action] = {
    **shared.ACTIONS,
    **people.ACTIONS,
    "bot": _bot,
    "gateway": _gateway,
    "drop": _drop,
    "event": _event,
    "limit": _limit,
    "rules": _rules,
    "script_model": _script_model,
    "state": _state,
    "seen": _seen,
    "files": _files,
    "wait": _wait,
    "reset": _reset,
}
