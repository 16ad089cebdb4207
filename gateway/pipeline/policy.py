"""The policy: who may speak, and who is an admin.

Invariants: people, groups and servers are known by exact ids, never by a name, a part or another spelling of an id.
An empty list lets nobody in. A channel without rules takes nothing. Admins come from the configuration alone, each
for one channel, and an anonymous, forwarded or edited message never counts as an admin's. A message that is not taken
leaves nothing in the store.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from channels.base import Inbound
from channels.ids import NUMERIC, IdFormat
from gateway.pipeline.limits import Buckets

#: "observe": not said to the bot, which may read it as context; "stranger": tell the person once how to get in;
#: "pairing": the text is a code, see `code_in`.
Verdict: TypeAlias = Literal["take", "observe", "ignore", "stranger", "pairing", "anonymous"]
#: Looks a "person" or "group" of a channel up in the store: (channel, subject, id) → "allowed", "blocked" or None.
Access: TypeAlias = Callable[[str, Literal["person", "group"], str], Awaitable[Literal["allowed", "blocked"] | None]]

#: The name of the person at the machine, in the terminal and when they sign in on the page from there.
OPERATOR: Final = "you"
#: Letters and digits of a code: no two look alike, and without vowels no word of eight letters is a code.
CODE_LETTERS: Final = "CDFGHJKMNPQRTVWX23456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The configuration's rules for one channel.

    `allow` and `admins` are user ids, `groups` chat ids. `servers` are larger places; every group of a server counts as
    listed. With `group_members` "everyone" all members of a listed group may speak there, else only people who are let
    in. With `observe`, lines that people who may speak in a group say to each other are context. `open_to_all` is for
    the terminal: anyone at the machine may speak, for they could as well read the files. With `vouched` the channel
    itself knows people by their keys: they may speak in private unless they are blocked. With `on_behalf` people speak
    as an account of another channel, `channel.user`: they may do so in private as long as that account may speak in
    private there. They have its rights as an admin only where the page says so. `operator` is the name under which the
    person at the machine signs in on the page as its admin.

    Raises `ValueError` for anything but sets of ids as the platform writes them.
    """

    allow: frozenset[str] = frozenset()
    admins: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()
    group_members: Literal["everyone", "allowed"] = "everyone"
    observe: bool = False
    open_to_all: bool = False
    on_behalf: bool = False
    vouched: bool = False
    operator: str = ""
    ids: IdFormat = NUMERIC

    def __post_init__(self) -> None:
        for name, ids, fits in (
            ("allow", self.allow, self.ids.is_person),
            ("admins", self.admins, self.ids.is_person),
            ("groups", self.groups, self.ids.is_chat),
            ("servers", self.servers, self.ids.is_person),
        ):
            # With a plain string, `in` would match every part of it.
            if not isinstance(ids, frozenset):
                raise ValueError(f"{name} must be a set of ids")
            for one in ids:
                if not fits(one):
                    raise ValueError(f"{name}: {one!r} is no id of its platform")


class Policy:
    """Judges messages by the rules of their channel (by its configured id) and by admins' decisions in chats."""

    def __init__(self, rules: Mapping[str, Rules], *, monotonic: Callable[[], float]) -> None:
        """`monotonic` gives seconds; it limits how often a stranger is told how to get in, to once an hour."""
        self._rules = dict(rules)
        self._strangers = Buckets(per_minute=1 / 60, burst=1, monotonic=monotonic)

    def renew(self, rules: Mapping[str, Rules]) -> None:
        self._rules = dict(rules)

    def ids(self, channel: str) -> IdFormat:
        return self._rules[channel].ids if channel in self._rules else NUMERIC

    def is_admin(self, inbound: Inbound) -> bool:
        rules = self._rules.get(inbound.channel)
        if rules is None or inbound.forwarded or inbound.edited:
            return False
        if rules.on_behalf:
            return inbound.as_admin and self.lists_admin(*self.account(inbound))
        return inbound.author_id in rules.admins

    def account(self, inbound: Inbound) -> tuple[str, str]:
        """Returns the channel and the id there of the account that speaks: on the page, the one that signed in."""
        rules = self._rules.get(inbound.channel)
        if rules is None or not rules.on_behalf:
            return inbound.channel, inbound.author_id
        channel, _, user_id = inbound.author_id.partition(".")
        return channel, user_id

    def trusts(self, channel: str) -> bool:
        rules = self._rules.get(channel)
        return rules is not None and rules.open_to_all

    def is_privileged(self, inbound: Inbound) -> bool:
        return self.is_admin(inbound) or self.trusts(inbound.channel)

    def lists_admin(self, channel: str, user_id: str) -> bool:
        """Returns whether this is an admin's id; an admin can't be blocked."""
        rules = self._rules.get(channel)
        return rules is not None and (user_id in rules.admins or (user_id != "" and user_id == rules.operator))

    def admins(self, channel: str) -> Sequence[str]:
        rules = self._rules.get(channel)
        return () if rules is None else tuple(sorted(rules.admins))

    def observes(self, inbound: Inbound) -> bool:
        rules = self._rules.get(inbound.channel)
        return rules is not None and rules.observe and inbound.chat_kind == "group"

    def lists_group(self, channel: str, chat: str) -> bool:
        """Returns whether the configuration names this very group as one to speak in."""
        rules = self._rules.get(channel)
        return rules is not None and chat in rules.groups

    async def judge(self, inbound: Inbound, access: Access) -> Verdict:
        """Returns the verdict on a message. Raises the errors of `access`: nobody is let in who can't be looked up."""
        verdict = await self._verdict(inbound, access)
        if verdict != "stranger" or self._strangers.take((inbound.channel, inbound.author_id)) == "ok":
            return verdict
        return "ignore"

    async def may_speak(self, inbound: Inbound, access: Access) -> bool:
        """Returns whether a message would be taken, without any effect. Raises the errors of `access`."""
        return await self._verdict(inbound, access) == "take"

    async def _verdict(self, inbound: Inbound, access: Access) -> Verdict:
        """Returns the verdict on a message, regardless of how often a stranger was told.

        A block beats the lists of the configuration, because it was decided later. Admins can't be blocked, since an
        admin who blocked themselves could never undo it.
        """
        rules = self._rules.get(inbound.channel)
        if rules is None:
            return "ignore"
        if not inbound.author_id:
            own = inbound.anonymous and inbound.addressed and not inbound.edited
            return "anonymous" if own and await self._is_open(inbound, rules, access) else "ignore"
        if not admits(inbound):
            return await self._overheard(inbound, access)
        if rules.open_to_all:
            return "take"
        if not rules.ids.is_person(inbound.author_id):
            return "ignore"
        judged = self._in_private if inbound.chat_kind == "private" else self._in_group
        return await (self._behind if rules.on_behalf else judged)(inbound, rules, access)

    async def _overheard(self, inbound: Inbound, access: Access) -> Verdict:
        """Returns the verdict on a line to others: context, if it would have been taken and is no command."""
        if not self.observes(inbound) or _COMMAND.match(inbound.text):
            return "ignore"
        return "observe" if await self._verdict(replace(inbound, addressed=True), access) == "take" else "ignore"

    async def _behind(self, inbound: Inbound, _page: Rules, access: Access) -> Verdict:
        """Returns the verdict on a message of a person who signed in with an account of another channel."""
        channel, user_id = self.account(inbound)
        rules = self._rules.get(channel)
        if rules is None or rules.on_behalf or inbound.chat_kind != "private" or inbound.chat != inbound.author_id:
            return "ignore"
        there = replace(inbound, channel=channel, author_id=user_id, chat=user_id)
        return "take" if await self._verdict(there, access) == "take" else "ignore"

    async def _in_private(self, inbound: Inbound, rules: Rules, access: Access) -> Verdict:
        author = inbound.author_id
        if author in rules.admins:
            return "take"
        state = await access(inbound.channel, "person", author)
        if state == "blocked":
            return "ignore"
        if state == "allowed" or author in rules.allow or rules.vouched:
            return "take"
        if inbound.edited:
            return "ignore"
        if code_in(inbound.text) is not None:
            return "pairing"
        return "stranger"

    async def _in_group(self, inbound: Inbound, rules: Rules, access: Access) -> Verdict:
        # An admin's command opens a group, so it must be heard in a group that is not open yet.
        if self.is_admin(inbound) and (inbound.pressed is not None or _COMMAND.match(inbound.text)):
            return "take"
        if not await self._is_open(inbound, rules, access):
            return "ignore"
        if inbound.author_id in rules.admins:
            return "take"
        person = await access(inbound.channel, "person", inbound.author_id)
        if person == "blocked":
            return "ignore"
        known = person == "allowed" or inbound.author_id in rules.allow
        return "take" if known or rules.group_members == "everyone" else "ignore"

    async def _is_open(self, inbound: Inbound, rules: Rules, access: Access) -> bool:
        group = await access(inbound.channel, "group", inbound.chat)
        listed = inbound.chat in rules.groups or inbound.server in rules.servers
        return group == "allowed" or (listed and group != "blocked")


def admits(inbound: Inbound) -> bool:
    """Returns whether a message comes from a person and is meant for the bot; if not, nobody's rights matter.

    An edit may take the bot's name out of a message that was meant for it; an edit of any other message changes
    nothing.
    """
    return (inbound.addressed or inbound.edited) and bool(inbound.author_id)


def warnings(rules: Mapping[str, Rules]) -> list[str]:
    """Returns warnings for the operator at the start: channels that nobody can use or look after."""
    said = []
    for channel, own in rules.items():
        if own.open_to_all or own.vouched or own.on_behalf or own.admins:
            continue
        if not (own.allow or own.groups or own.servers):
            said.append(
                f"{channel}: nobody may talk to it, except people let in earlier: allow and admins are empty. Add your "
                f"numeric user id to both, under channels in config.yaml, at the bot with the id {channel}, and "
                "restart."
            )
        else:
            said.append(
                f"{channel}: it has no admin, so nobody can let others in or open a group from the chat. Add your "
                f"numeric user id to admins, under channels in config.yaml, at the bot with the id {channel}."
            )
    return said


def new_code(choose: Callable[[str], str]) -> str:
    """Returns a new code, XXXX-XXXX, of 36 bits.

    In the ten minutes a code lives, a person gets three guesses, all people together a hundred. `choose` picks one
    character of a text; where security matters it is `secrets.choice`.
    """
    letters = "".join(choose(CODE_LETTERS) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"


def code_in(text: str) -> str | None:
    """Returns the pairing code of a message that is only a code, alone or after /start or /pair; else None."""
    match = _CODE.fullmatch(text.strip())
    return None if match is None else f"{match[1]}-{match[2]}".upper()


_COMMAND = re.compile(r"\s{0,20}/[a-z][a-z0-9_]{0,31}(?:@\w{1,64})?(?:\s|\Z)", re.ASCII | re.IGNORECASE)
# Only ASCII letters match, also without regard to case: the Kelvin sign is no K. Phones make a dash of a hyphen.
_CODE = re.compile(
    rf"(?:/(?:start|pair)(?:@\w{{1,64}})?\s{{1,20}})?([{CODE_LETTERS}]{{4}})[-–—－ ]?([{CODE_LETTERS}]{{4}})",
    re.ASCII | re.IGNORECASE,
)
