"""Identifies the caller, the person for whom a key stands or whom a front end names, and the place of their talk.

Invariants: a person's own key is that person, whatever else the request says. From a front end with a secret, only
signed claims count. A front end that is marked as shared names people within a room of its own, so it can name nobody
outside. Each request asks the policy anew, so a block or a revoked key holds from the next request on. A thread names
its agent, so that a conversation never moves to another agent's memory.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from channels.api import API
from channels.base import Inbound
from gateway.config.settings import FrontEndSettings
from gateway.pipeline.policy import Policy
from gateway.pipeline.store import Roster, Store
from memory.chat.identities import Who
from memory.people.keyring import SCOPES as KEY_SCOPES
from memory.people.keyring import KeyHolder, KeyScope

_CONVERSATION: Final = re.compile(r"[a-z0-9]{1,32}")


def said(user_id: str, name: str, thread: str, text: str = "", *, key: str = "", at: int = 0) -> Inbound:
    return Inbound(
        channel=API, platform=API, bot_id=API, update_key=key, chat=user_id, chat_kind="private", author_id=user_id,
        author_name=name, message_id=key, text=text, sent_at=at, thread=thread, ticket=key,
    )  # fmt: skip


def thread_of(agent: str, conversation: str) -> str:
    return f"{agent}.{conversation}"


def agent_in(thread: str | None) -> str:
    return (thread or "").partition(".")[0]


def conversation_in(thread: str | None) -> str:
    return (thread or "").partition(".")[2]


def conversation(named: str) -> str:
    return named if _CONVERSATION.fullmatch(named) else digest(named)[:16]


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


#: Seconds by which the clock of a front end may differ.
_CLOCKS: Final = 60
_LONGEST_NAME: Final = 200
_LONGEST_SECRET: Final = 1_000
_JWT_HEADER: Final = "x-openwebui-user-jwt"
#: As whom Open WebUI signs.
ISSUER: Final = "open-webui"
#: Headers in which front ends name a person, in plain words.
_NAMES: Final = ("x-openwebui-user-id", "x-librechat-user-id", "x-user-id")
_CONVERSATIONS: Final = ("x-openwebui-chat-id", "x-librechat-conversation-id", "x-conversation-id")


class ApiRefusal(Exception):
    """Raised when a request is refused. `str()` is for the program's author; `code` is for the program."""

    def __init__(self, status: int, code: str, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The person for whom a program asks.

    `user_id` and `name` are those of the account of their programs. `through` is their name for the program, `key`
    names the key that let the request in, `home` is the conversation of requests that name none. `store` is the only
    one that this key opens; None opens all. `holder` is None if a front end names the person.
    """

    user_id: str
    name: str
    scopes: tuple[KeyScope, ...]
    through: str
    key: str
    home: str
    store: Store | None
    holder: KeyHolder | None = None

    @property
    def who(self) -> Who:
        return Who(platform=API, user_id=self.user_id, name=self.name)

    def needs(self, scope: KeyScope) -> None:
        """Raises `ApiRefusal` unless the key may do this."""
        if scope not in self.scopes:
            raise ApiRefusal(403, "missing_scope", f"This key may not do that: it lacks the permission {scope!r}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key that is known, as far as the head of a request says.

    `sender` names the person whose share of the server the request takes. With a key of their own `caller` is known;
    through the `front_end` it is the person `named` in the head, or in the body if the head names nobody.
    """

    sender: str
    caller: Caller | None = None
    front_end: str = ""
    named: str = ""
    name: str = ""


class Callers:
    def __init__(
        self, roster: Roster, front_ends: Sequence[FrontEndSettings], policy: Policy, *, now: Callable[[], int]
    ) -> None:
        self._roster = roster
        self._front_ends = front_ends
        self._policy = policy
        self._access = roster.stores[roster.default].memory.access
        self._now = now

    async def key(self, headers: Mapping[str, str]) -> Key:
        """Returns the key of a request, which its headers alone give. Raises `ApiRefusal` if they give none."""
        kind, _, secret = headers.get("authorization", "").partition(" ")
        secret = secret.strip()
        # Clients of mem0 say Token.
        if kind.lower() not in ("bearer", "token") or not secret:
            raise _unknown("No key was given. Send it as the header Authorization: Bearer rk_…")
        if len(secret) > _LONGEST_SECRET or not secret.isprintable() or not secret.isascii():
            raise _unknown()
        return await self._own_key(secret) or self._front_end_key(secret, headers)

    async def who(self, key: Key, user: str = "") -> Caller:
        """Returns the person behind a request. `user` is the person that its body names. Raises `ApiRefusal`."""
        caller = key.caller or _behind(key, user)
        if not await self._policy.may_speak(_private(API, API, caller.user_id), self._access.state):
            raise _unknown()
        return caller

    async def _own_key(self, secret: str) -> Key | None:
        for n, store in enumerate(self._roster.each_store):
            holder = await store.memory.keys.holder(secret)
            if holder is None:
                continue
            account = holder.account
            inbound = _private(holder.key.channel, account.platform, account.user_id)
            if not await self._policy.may_speak(inbound, self._access.state):
                raise _unknown()
            caller = Caller(
                user_id=holder.user_id,
                name=account.name,
                scopes=holder.key.scopes,
                through=holder.key.label,
                key=f"key {n}.{holder.key.id}",
                home=f"key{holder.key.id}",
                store=store,
                holder=holder,
            )
            return Key(sender=f"{account.platform} {account.user_id}", caller=caller)
        return None

    def _front_end_key(self, secret: str, headers: Mapping[str, str]) -> Key:
        front_end = None
        for one in self._front_ends:
            if hmac.compare_digest(one.key.get_secret_value().encode(), secret.encode()):
                front_end = one
        if front_end is None:
            raise _unknown()
        if front_end.jwt_secret is not None:
            claims = self._signed(headers.get(_JWT_HEADER, ""), front_end)
            named, name = claims["sub"], str(claims.get("name") or "")
        else:
            named, name = next((headers[header] for header in _NAMES if headers.get(header)), ""), ""
        return Key(
            sender=f"front end {front_end.name} {digest(named)[:32]}",
            front_end=front_end.name,
            named=named,
            name=name.encode("utf-8", "replace").decode()[:_LONGEST_NAME],
        )

    def _signed(self, token: str, front_end: FrontEndSettings) -> dict[str, Any]:
        """Returns the claims of a signed header. Raises `ApiRefusal` unless they are this front end's, and current."""
        assert front_end.jwt_secret is not None
        try:
            signed, _, signature = token.rpartition(".")
            head, body = (json.loads(_decoded(part)) for part in signed.split("."))
            own = hmac.digest(front_end.jwt_secret.get_secret_value().encode(), signed.encode(), "sha256")
            fits = head.get("alg") == "HS256" and hmac.compare_digest(own, _decoded(signature))
            expires = float(body["exp"]) if fits else 0.0
            current = fits and body.get("iss") == ISSUER and expires + _CLOCKS > self._now() / 1000
            if not current or not isinstance(body.get("sub"), str):
                raise ValueError
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            raise _unknown(f"The header {_JWT_HEADER} is missing, not signed with jwt_secret, or expired.") from None
        claims: dict[str, Any] = body
        return claims


def _behind(key: Key, user: str) -> Caller:
    """Returns the person whom a front end names. Raises `ApiRefusal` unless it names somebody."""
    named = key.named or user
    if not named.strip() or len(named) > _LONGEST_NAME:
        raise ApiRefusal(400, "no_user", "This key is shared, so each request must name its person.", param="user")
    resolved(named)
    own = f"{key.front_end}.{digest(named)[:32]}"
    return Caller(
        user_id=own,
        name=key.name or key.front_end,
        scopes=KEY_SCOPES,
        through=key.front_end,
        key=own,
        home="main",
        store=None,
    )


def conversation_named(headers: Mapping[str, str]) -> str:
    """Returns the conversation that a request's headers name; "" if they name none. Raises `ApiRefusal`."""
    return next((resolved(headers[header]) for header in _CONVERSATIONS if headers.get(header)), "")


def resolved(value: str) -> str:
    """Returns a value that a front end had to fill in. Raises `ApiRefusal` if it left the placeholder."""
    if "{{" in value:
        raise ApiRefusal(
            400,
            "unresolved_placeholder",
            f"The front end sent {value[:80]!r} as it stands in its settings. Correct it.",
        )
    return value


def _private(channel: str, platform: str, user_id: str) -> Inbound:
    return Inbound(
        channel=channel, platform=platform, bot_id="", update_key="", chat=user_id, chat_kind="private",
        author_id=user_id, author_name="", message_id="", text="", sent_at=0,
    )  # fmt: skip


def _unknown(message: str = "This key is unknown or revoked, or its owner may not talk to this bot.") -> ApiRefusal:
    return ApiRefusal(401, "invalid_api_key", message)


def _decoded(part: str) -> bytes:
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
