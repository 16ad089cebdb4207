"""Parses updates with aiogram, without the values in them that it doesn't know.

Telegram adds kinds several times a year, and aiogram refuses a whole update for any of them. Here only the values that
it names are dropped, however deep they stand. What people must not lose by that has a stand-in: a message of an
unknown origin stays a forwarded one, and a change of the bot's own membership always tells whether it is still there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeAlias

from aiogram.types import Update
from pydantic import ValidationError

JSON: TypeAlias = dict[str, Any]
#: An error of pydantic: its place below the value in question, and its kind.
_Fault: TypeAlias = tuple[tuple[int | str, ...], str]

#: The most times that an update is parsed. Each time at least one value is dropped, and what can't be without it next.
_ROUNDS = 12
_MEMBERS = ("creator", "administrator", "member")


def parsed(raw: JSON, *, now: int) -> tuple[Update | None, list[str]]:
    """Returns an update, None if nothing of it can be read, and the names of the fields that were dropped.

    `now` (milliseconds UTC) stands in for a time that can't be read.
    """
    dropped: list[str] = []
    value = raw
    for _ in range(_ROUNDS):
        try:
            return Update.model_validate(value), dropped
        except ValidationError as exc:
            errors = exc.errors(include_input=False, include_url=False, include_context=False)
            value = deepcopy(raw) if value is raw else value
            faults = [(error["loc"], error["type"]) for error in errors]
            dropped += [".".join(map(str, place)) for place, _ in faults]
            if not _prune(value, faults, now):
                break
    return None, dropped


def _prune(node: Any, faults: Sequence[_Fault], now: int) -> bool:
    """Drops from `node` the values in which aiogram has found `faults`. Returns False if it can't be read at all."""
    inside: dict[Any, list[_Fault]] = defaultdict(list)
    kinds: dict[Any, list[_Fault]] = defaultdict(list)
    for place, error in faults:
        if not place:
            return False
        (head, *rest), known = place, isinstance(node, dict | list)
        if known and (head in node if isinstance(node, dict) else isinstance(head, int) and head < len(node)):
            inside[head].append((tuple(rest), error))
        elif known and rest:
            kinds[head].append((tuple(rest), error))  # aiogram names the kind of object that it has tried
        elif known and error == "missing" and (stand_in := _stand_in(head, None, node, now)) is not None:
            node[head] = stand_in
        else:
            return False
    if kinds:
        fitting = [tried for tried in kinds.values() if ("literal_error", 1) not in {(of, len(at)) for at, of in tried}]
        return bool(fitting) and _prune(node, min(fitting, key=len), now)
    for head in sorted(inside, reverse=True):
        if not _prune(node[head], inside[head], now):
            stand_in = _stand_in(head, node[head], node, now)
            if stand_in is None or stand_in == node[head]:
                del node[head]
            else:
                node[head] = stand_in
    return True


def _stand_in(name: int | str, value: Any, around: JSON, now: int) -> Any:
    return _STAND_INS[name](value, around, now) if name in _STAND_INS else None


def _user(value: Any, around: JSON, _now: int) -> JSON | None:
    """Returns what is known of a user; in a private chat, the chat tells who it is."""
    user, chat = _dict(value), _dict(around.get("chat"))
    number = user.get("id", chat.get("id") if chat.get("type") == "private" else None)
    if not isinstance(number, int):
        return None
    return {"id": number, "is_bot": user.get("is_bot") is True, "first_name": _text(user.get("first_name"))}


def _chat(value: Any, _around: JSON, _now: int) -> JSON | None:
    """Returns what is known of a chat. Ids of people are positive."""
    chat = _dict(value)
    if not isinstance(chat.get("id"), int):
        return None
    kind = _text(chat.get("type")) or ("private" if chat["id"] > 0 else "supergroup")
    return {"id": chat["id"], "type": kind, "title": _text(chat.get("title"))}


def _origin(_value: Any, _around: JSON, now: int) -> JSON:
    return {"type": "hidden_user", "date": now // 1000, "sender_user_name": ""}


def _membership(value: Any, _around: JSON, _now: int) -> JSON:
    """Returns a membership by its status alone. With an unknown one it counts as gone until it is written to."""
    member = _dict(value)
    there = member.get("is_member", member.get("status") in _MEMBERS) is True
    return {"status": "member" if there else "left", "user": _user(member.get("user"), {}, 0) or _NOBODY}


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_NOBODY: JSON = {"id": 0, "is_bot": True, "first_name": ""}
_STAND_INS: Mapping[int | str, Callable[[Any, JSON, int], Any]] = {
    "from": _user,
    "chat": _chat,
    "date": lambda _value, _around, now: now // 1000,
    "message_id": lambda _value, _around, _now: 0,
    "forward_origin": _origin,
    "origin": _origin,
    "old_chat_member": _membership,
    "new_chat_member": _membership,
    # A Bot API server of one's own may be older than aiogram.
    "persistent_id": lambda _value, _around, _now: "",
    "allows_revoting": lambda _value, _around, _now: False,
    "members_only": lambda _value, _around, _now: False,
}
