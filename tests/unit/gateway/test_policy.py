"""Who may speak and who is an admin: every identity that is not the named one stays outside."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Inbound, Place
from channels.ids import FORMATS, NUMERIC, IdFormat
from gateway.pipeline.policy import CODE_LETTERS, Policy, Rules, Verdict, code_in, new_code, warnings
from tests.kit.tables import each_row

ADMIN = "12345678"
FRIEND = "22222222"
GUEST = "33333333"
STRANGER = "44444444"
CLUB = "-1001234567"
OTHER_CLUB = "-1007654321"
SERVER = "18446744073709551615"
CHANNEL = "1234567890123456789"
CODE = "CDFG-2345"

RULES = {
    "telegram": Rules(
        allow=frozenset({FRIEND}), admins=frozenset({ADMIN}), groups=frozenset({CLUB}), group_members="allowed"
    ),
    "telegram2": Rules(allow=frozenset({FRIEND}), admins=frozenset({"87654321"}), groups=frozenset({CLUB})),
    "discord": Rules(
        allow=frozenset({FRIEND}), admins=frozenset({ADMIN}), servers=frozenset({SERVER}), group_members="allowed"
    ),
    "empty": Rules(),
    "console": Rules(open_to_all=True),
}


@dataclass
class Store:
    """The decisions made in chats: (channel, subject, id) → state. Keeps what it was asked."""

    decided: dict[tuple[str, str, str], Literal["allowed", "blocked"]] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    async def __call__(
        self, channel: str, subject: Literal["person", "group"], reference: str
    ) -> Literal["allowed", "blocked"] | None:
        self.asked.append((channel, subject, reference))
        return self.decided.get((channel, subject, reference))


class Seconds:
    at = 0.0

    def __call__(self) -> float:
        return self.at


def policy(rules: dict[str, Rules] | None = None, clock: Seconds | None = None) -> Policy:
    return Policy(RULES if rules is None else rules, monotonic=clock or Seconds())


PLAIN = Inbound(
    channel="telegram",
    platform="telegram",
    bot_id="7",
    update_key="1",
    chat=FRIEND,
    chat_kind="private",
    author_id=FRIEND,
    author_name="Ada",
    message_id="1",
    text="hello",
    sent_at=0,
)


def said(author: str, text: str = "hello", **more: Any) -> Inbound:
    return replace(PLAIN, author_id=author, chat=author or "1", text=text, **more)


def in_group(author: str, text: str = "hello", *, chat: str = CLUB, **more: Any) -> Inbound:
    return replace(PLAIN, author_id=author, chat=chat, chat_kind="group", text=text, **more)


def in_server(author: str, text: str = "hello", *, server: Any = SERVER, **more: Any) -> Inbound:
    return in_group(author, text, chat=CHANNEL, **{"channel": "discord", "server": server, **more})


#: Everything that is not the admin's id, nor that of anybody who may speak, though it may look like it.
IMPOSTORS: list[Any] = [
    # nobody, and what programs write for nobody
    "", " ", "\t", "\n", "\u3000", "0", "00", "-0", "+0", "0.0", "-1", "None", "null", "nil", "undefined", "NaN", "true",
    None, 0, False, int(ADMIN), ADMIN.encode(), (ADMIN,),
    # the id in another spelling
    f"+{ADMIN}", f"-{ADMIN}", f"0{ADMIN}", f"00{ADMIN}", f" {ADMIN}", f"{ADMIN} ", f"{ADMIN}\n", f"\n{ADMIN}", f"{ADMIN}\r",
    f"{ADMIN}\x00", f"{ADMIN}\u200b", f"\ufeff{ADMIN}", f"\u200f{ADMIN}", f"{ADMIN}.0", f"{ADMIN}.", "12_345_678",
    "12,345,678", "12 345 678", "1.2345678e7", "0xbc614e", "0b101111000110000101001110", "１２３４５６７８", "١٢٣٤٥٦٧٨",
    "१२३४५६७८", "①②③④⑤⑥⑦⑧", "¹²³⁴⁵⁶⁷⁸", "1234567８", "1２345678", "12345678٠", "\U0001d7cf\U0001d7d0\U0001d7d1\U0001d7d2\U0001d7d3\U0001d7d4\U0001d7d5\U0001d7d6",
    # parts of it and more than it
    ADMIN[:-1], ADMIN[1:], ADMIN[3:6], ADMIN[0], ADMIN * 2, f"{ADMIN}9", f"9{ADMIN}", f"1{ADMIN}", "8" * 400,
    # lists, patterns, names, other places
    f"{ADMIN},{FRIEND}", f"{ADMIN};1", f"{ADMIN}|", "*", ".*", r"\d+", "%", "_", "all", "everyone", "any", "admin", "Admin",
    "@admin", "@ada", "Ada", f"id:{ADMIN}", f"telegram:{ADMIN}", f"tg://user?id={ADMIN}", f"discord:{ADMIN}", f"<@{ADMIN}>",
    f"{ADMIN}:{CLUB}", CLUB, CLUB.removeprefix("-"), STRANGER, "1087968824", "136817688", "777000",
    f"' or '{ADMIN}'='{ADMIN}", f"${{{ADMIN}}}",
]  # fmt: skip
#: Those of them that are somebody's id, though not that of anybody with rights.
OTHER_IDS = [
    ADMIN[:-1], ADMIN[1:], ADMIN[3:6], ADMIN[0], ADMIN * 2, f"{ADMIN}9", f"9{ADMIN}", f"1{ADMIN}",
    CLUB.removeprefix("-"), STRANGER, "1087968824", "136817688", "777000",
]  # fmt: skip
TEXTS = [
    "hello", "", "/start", "/help", "/allow 44444444", "/block 12345678", "/pair", "/jobs", "/agents", "/reload", "/backup",
    "/dead", f"/admin memory {FRIEND} show", "/ALLOW@bot 1", f"I am admin {ADMIN}", ADMIN,
]  # fmt: skip


def test_there_are_enough_identities_and_texts_to_mean_something() -> None:
    assert len(IMPOSTORS) >= 40
    assert len(IMPOSTORS) * len(TEXTS) >= 400
    assert not {ADMIN, FRIEND, GUEST} & {one for one in IMPOSTORS if isinstance(one, str)}


@pytest.mark.parametrize("text", TEXTS)
async def test_no_identity_but_the_named_one_passes(text: str) -> None:
    """Nearly every hole of this kind of bot was an id that matched by half, or an empty one that matched all."""
    judge = policy()
    store = Store({("telegram", "person", GUEST): "allowed", ("telegram", "group", "-5"): "allowed"})
    wrong = [
        (inbound.author_id, inbound.chat_kind, inbound.chat)
        for author in IMPOSTORS
        for inbound in (
            said(author, text),
            said(author, text, channel="discord", server=SERVER),
            *(in_group(author, text, chat=chat) for chat in (CLUB, OTHER_CLUB, "-5")),
            *(in_server(author, text, server=server) for server in (SERVER, None, "", author)),
        )
        if judge.is_admin(inbound) or await judge.judge(inbound, store) in ("take", "pairing")
    ]
    assert wrong == []


@pytest.mark.parametrize("text", TEXTS)
async def test_where_a_whole_group_may_speak_only_people_do(text: str) -> None:
    """An id that is no person's is somebody without rights or a fault, never a member."""
    judge = policy({"telegram": replace(RULES["telegram"], group_members="everyone")})
    for author in IMPOSTORS:
        inbound = in_group(author, text)
        assert not judge.is_admin(inbound)
        assert await judge.judge(inbound, Store()) == ("take" if author in OTHER_IDS else "ignore")
    judge = policy({"discord": replace(RULES["discord"], group_members="everyone")})
    for author in IMPOSTORS:
        inbound = in_server(author, text)
        assert not judge.is_admin(inbound)
        assert await judge.judge(inbound, Store()) == ("take" if author in OTHER_IDS else "ignore")


@pytest.mark.parametrize("text", TEXTS)
async def test_the_named_ones_do_pass(text: str) -> None:
    """A lock that opens for nobody would pass every test above."""
    judge = policy()
    for author in (ADMIN, FRIEND, GUEST):
        store = Store({("telegram", "person", GUEST): "allowed"})
        for inbound in (said(author, text), in_group(author, text)):
            assert await judge.judge(inbound, store) == "take"
            assert judge.is_admin(inbound) is (author == ADMIN)
        store = Store({("discord", "person", GUEST): "allowed"})
        for inbound in (said(author, text, channel="discord"), in_server(author, text)):
            assert await judge.judge(inbound, store) == "take"
            assert judge.is_admin(inbound) is (author == ADMIN)


@each_row(
    "more",
    [
        {"forwarded": True}, {"edited": True}, {"forwarded": True, "edited": True}, {"author_id": ""},
        {"author_id": "", "author_name": ADMIN}, {"channel": "telegram2"}, {"channel": "empty"}, {"channel": "console"},
        {"channel": "telegra"}, {"channel": "telegram "}, {"channel": ""}, {"channel": "Telegram"},
        {"channel": "telegram", "platform": "telegram", "author_id": "87654321"},
    ],
)  # fmt: skip
@each_row("text", TEXTS)
def test_an_admin_is_none_anonymously_by_others_words_later_or_elsewhere(text: str, more: dict[str, Any]) -> None:
    """Rights are those of a fresh message, by that person, on that channel."""
    assert policy().is_admin(said(ADMIN, text))
    for inbound in (said(ADMIN, text), in_group(ADMIN, text)):
        assert not policy().is_admin(replace(inbound, **more))


@pytest.mark.parametrize("anonymous", [True, False])
async def test_only_who_writes_for_the_group_itself_is_an_anonymous_admin(anonymous: bool) -> None:
    """A linked channel may have the group's name."""
    post = in_group("", author_name="Club", chat_title="Club", anonymous=anonymous)
    assert await policy().judge(post, Store()) == ("anonymous" if anonymous else "ignore")


@given(st.text())
def test_no_text_but_the_id_itself_is_an_admin(author: str) -> None:
    assert policy().is_admin(said(author)) is (author == ADMIN)


async def test_empty_lists_let_nobody_in() -> None:
    """A missing list was taken for "everybody" elsewhere."""
    judge = policy()
    for author in (ADMIN, FRIEND, STRANGER, ""):
        assert await judge.judge(said(author, channel="empty"), Store()) in ("stranger", "ignore")
        assert await judge.judge(in_group(author, "/allow", channel="empty"), Store()) == "ignore"


async def test_a_channel_without_rules_takes_nothing() -> None:
    """A name that the configuration does not know has no default to fall back on."""
    store = Store({("nowhere", "person", FRIEND): "allowed", ("nowhere", "group", CLUB): "allowed"})
    assert await policy().judge(said(FRIEND, channel="nowhere"), store) == "ignore"
    assert await policy().judge(in_group(FRIEND, channel="nowhere"), store) == "ignore"


async def test_whoever_sits_at_the_terminal_may_speak_and_is_not_looked_up() -> None:
    """They could read the files as well; a block must not lock the operator out of their own machine."""
    store = Store({("console", "person", "ada"): "blocked"})
    assert await policy().judge(said("ada", channel="console"), store) == "take"
    assert await policy().judge(said("", channel="console"), store) == "ignore"
    assert store.asked == []


async def test_what_is_not_meant_for_the_bot_is_ignored() -> None:
    for inbound in (said(ADMIN), in_group(ADMIN, "/allow"), said("ada", channel="console")):
        assert await policy().judge(replace(inbound, addressed=False), Store()) == "ignore"


async def test_a_block_beats_the_configuration_except_for_admins() -> None:
    """It was said later; but nobody else could undo it for an admin who blocked themselves."""
    store = Store({("telegram", "person", who): "blocked" for who in (ADMIN, FRIEND, STRANGER)})
    verdicts: list[Verdict] = []
    for who in (ADMIN, FRIEND, STRANGER):
        verdicts += [await policy().judge(said(who, CODE), store), await policy().judge(in_group(who), store)]
    assert verdicts == ["take", "take", "ignore", "ignore", "ignore", "ignore"]
    assert policy().lists_admin("telegram", ADMIN)
    assert not policy().lists_admin("telegram", FRIEND)
    assert not policy().lists_admin("telegram2", ADMIN)


async def test_a_block_holds_where_everybody_in_the_group_may_speak() -> None:
    """Else it would not hold where it is needed most."""
    store = Store({("telegram2", "person", STRANGER): "blocked"})
    assert await policy().judge(in_group(STRANGER, channel="telegram2"), store) == "ignore"
    assert await policy().judge(in_group(GUEST, channel="telegram2"), store) == "take"


async def test_a_group_opens_by_the_configuration_or_an_admins_word_only() -> None:
    """Anybody can add a bot to their group."""
    judge = policy()
    for author, text in product((FRIEND, ADMIN), ("hello", "see /usr/bin", "/usr/bin")):
        assert await judge.judge(in_group(author, text, chat=OTHER_CLUB), Store()) == "ignore"
    assert await judge.judge(in_group(FRIEND, "/allow", chat=OTHER_CLUB), Store()) == "ignore"
    assert await judge.judge(in_group(ADMIN, "/allow", chat=OTHER_CLUB), Store()) == "take"
    assert await judge.judge(in_group(ADMIN, "", pressed="q1:yes", chat=OTHER_CLUB), Store()) == "take"
    assert await judge.judge(in_group(FRIEND, "", pressed="q1:yes", chat=OTHER_CLUB), Store()) == "ignore"
    opened = Store({("telegram", "group", OTHER_CLUB): "allowed"})
    for author in (FRIEND, ADMIN):
        assert await judge.judge(in_group(author, chat=OTHER_CLUB), opened) == "take"


async def test_a_blocked_group_is_silent_until_an_admin_opens_it_again() -> None:
    store = Store({("telegram", "group", CLUB): "blocked"})
    assert await policy().judge(in_group(FRIEND), store) == "ignore"
    assert await policy().judge(in_group(ADMIN), store) == "ignore"
    assert await policy().judge(in_group(ADMIN, "/allow"), store) == "take"
    assert await policy().judge(in_group(ADMIN, "/allow", edited=True), store) == "ignore"
    assert policy().lists_group("telegram", CLUB) and not policy().lists_group("telegram", OTHER_CLUB)


@pytest.mark.parametrize(
    "group", ["", "0", "-", CLUB[:-1], CLUB[1:], f" {CLUB}", f"{CLUB}0", "-0" + CLUB[1:], "*", f"-{CLUB}"]
)
async def test_a_group_is_known_by_its_exact_id(group: str) -> None:
    assert await policy().judge(in_group(FRIEND, chat=group), Store()) == "ignore"


@pytest.mark.parametrize(
    "server",
    [
        None, "", " ", "0", "*", "None", "null", "Adas server", "@everyone", 0, int(SERVER), SERVER.encode(), (SERVER,), frozenset({SERVER}),
        SERVER[:-1], SERVER[1:], f"{SERVER}0", f"0{SERVER}", f"+{SERVER}", f"-{SERVER}", f" {SERVER}", f"{SERVER}\n",
        SERVER.translate({ord(str(n)): ord("０") + n for n in range(10)}), f"{SERVER},{CHANNEL}", CHANNEL, ADMIN, FRIEND, CLUB,
    ],
)  # fmt: skip
async def test_a_server_is_known_by_its_exact_id(server: Any) -> None:
    """Not by its name, nor by being nothing in particular; and an admin's rights are those of a person anywhere."""
    assert await policy().judge(in_server(FRIEND), Store()) == "take"
    assert await policy().judge(in_server(FRIEND, server=server), Store()) == "ignore"
    assert await policy().judge(in_server(ADMIN, server=server), Store()) == "ignore"
    assert await policy().judge(in_server(ADMIN, "/allow here", server=server), Store()) == "take"
    assert not policy().is_admin(in_server(server, server=SERVER)) or server == ADMIN


async def test_a_listed_server_opens_its_channels_and_nothing_else() -> None:
    """Neither private chats of its members, nor another bot's channels; and the lists of chats stay lists of chats."""
    assert await policy().judge(said(STRANGER, channel="discord", server=SERVER), Store()) == "stranger"
    assert await policy().judge(in_server(STRANGER), Store()) == "ignore"
    for channel in ("telegram", "telegram2", "empty", "nowhere"):
        assert await policy().judge(in_server(FRIEND, channel=channel), Store()) == "ignore"
    named = policy({"discord": Rules(servers=frozenset({CHANNEL}), groups=frozenset({SERVER}))})
    assert await named.judge(in_server(FRIEND), Store()) == "ignore"
    assert not policy().lists_group("discord", CHANNEL) and not policy().lists_group("discord", SERVER)


async def test_a_blocked_channel_of_a_listed_server_is_silent() -> None:
    """An admin said so there, later than the configuration; the server's other channels go on."""
    store = Store({("discord", "group", CHANNEL): "blocked"})
    assert await policy().judge(in_server(FRIEND), store) == "ignore"
    assert await policy().judge(in_server(ADMIN), store) == "ignore"
    assert await policy().judge(in_server(ADMIN, "/allow here"), store) == "take"
    assert await policy().judge(replace(in_server(FRIEND), chat="99"), store) == "take"
    blocked = Store({("discord", "person", FRIEND): "blocked"})
    assert await policy().judge(in_server(FRIEND), blocked) == "ignore"


async def test_whether_somebody_may_speak_can_be_asked_without_consequence() -> None:
    """A stranger who types a command must still be told how to get in when they send it."""
    judge = policy()
    assert not await judge.may_speak(said(STRANGER, "/memory"), Store())
    assert not await judge.may_speak(said(STRANGER, CODE), Store())
    assert await judge.judge(said(STRANGER), Store()) == "stranger"
    for inbound in (said(FRIEND), said(ADMIN), in_group(FRIEND), in_server(FRIEND), said("ada", channel="console")):
        assert await judge.may_speak(inbound, Store())
    for inbound in (said(""), in_group(STRANGER), in_server(STRANGER), said(FRIEND, channel="nowhere")):
        assert not await judge.may_speak(inbound, Store())


def test_the_admins_of_a_channel_are_those_of_its_configuration() -> None:
    """They are offered more commands; a channel that is not known has none."""
    assert policy().admins("telegram") == (ADMIN,)
    assert policy().admins("console") == policy().admins("empty") == policy().admins("nowhere") == ()


async def test_what_was_decided_on_one_channel_says_nothing_of_another() -> None:
    store = Store({("telegram2", "person", GUEST): "allowed", ("telegram2", "group", OTHER_CLUB): "allowed"})
    assert await policy().judge(said(GUEST, channel="telegram2"), store) == "take"
    assert await policy().judge(said(GUEST), store) == "stranger"
    assert await policy().judge(in_group(FRIEND, chat=OTHER_CLUB), store) == "ignore"


async def test_a_stranger_is_told_how_to_get_in_at_most_once_an_hour() -> None:
    """Politely, but no flood can be drawn from it; in a group and after an edit, not at all."""
    clock = Seconds()
    judge = policy(clock=clock)
    assert await judge.judge(in_group(STRANGER), Store()) == "ignore"
    assert await judge.judge(said(STRANGER, edited=True), Store()) == "ignore"
    assert [await judge.judge(said(STRANGER), Store()) for _ in range(3)] == ["stranger", "ignore", "ignore"]
    assert await judge.judge(said(GUEST), Store()) == "stranger"
    clock.at += 3_599
    assert await judge.judge(said(STRANGER), Store()) == "ignore"
    clock.at += 2
    assert [await judge.judge(said(STRANGER), Store()) for _ in range(2)] == ["stranger", "ignore"]


async def test_a_strangers_code_is_looked_at_in_private_only() -> None:
    """In a group everybody would read it; an edited message is no new word; who is in already needs none."""
    for text in (CODE, f"/start {CODE}", f"/pair {CODE}", "cdfg2345", f"/START@bot {CODE}"):
        assert await policy().judge(said(STRANGER, text), Store()) == "pairing"
        assert await policy().judge(said(STRANGER, text, forwarded=True), Store()) == "pairing"
        assert await policy().judge(said(STRANGER, text, edited=True), Store()) == "ignore"
        assert await policy().judge(in_group(STRANGER, text), Store()) == "ignore"
        assert await policy().judge(said(FRIEND, text), Store()) == "take"


@each_row("text", [
        CODE, "CDFG2345", "cdfg2345", "Cdfg-2345", " CDFG 2345\n", "CDFG–2345", "CDFG—2345", "CDFG－2345",
        "/start CDFG-2345", "/pair   cdfg2345", "/start@some_bot CDFG-2345",
    ])  # fmt: skip
def test_a_code_is_read_as_people_and_phones_write_it(text: str) -> None:
    """Case, the hyphen, and what a keyboard makes of it do not matter."""
    assert code_in(text) == CODE


@each_row("text", [
        "", "hello", "whatever", "birthday", "/start", "/pair", "CDFG-234", "CDFG-23456", "CDFG--2345", "CDF-G2345", "OOOO-1111",
        "CDFG-2345 please", "my code is CDFG-2345", "/help CDFG-2345", "/startCDFG-2345", "CDFG\n\n2345", "\u212aDFG-2345", "４DFG-2345",
        "-" * 100_000, "CDFG-2345" * 100_000, "/start" + " " * 100_000 + CODE,
    ])  # fmt: skip
def test_what_is_no_code_is_not_tried_as_one(text: str) -> None:
    """A wrong code costs a try; an ordinary word must not."""
    assert code_in(text) is None


@given(st.integers())
def test_a_new_code_is_found_in_a_message(seed: int) -> None:
    code = new_code(random.Random(seed).choice)
    assert code_in(code) == code_in(f"/start {code.lower()}") == code
    assert len(set(code.replace("-", "")) - set(CODE_LETTERS)) == 0


def test_the_letters_of_a_code_can_be_told_apart() -> None:
    """It is read aloud and copied by hand; without vowels it is never a word."""
    assert len(set(CODE_LETTERS)) == len(CODE_LETTERS) == 24
    assert not set(CODE_LETTERS) & set("0O1ILAEUY5S2Z8B") - set("258")


@given(st.text(), st.integers(1, 2**64 - 1))
def test_an_id_is_digits_without_a_leading_zero(text: str, number: int) -> None:
    assert NUMERIC.is_person(str(number)) and NUMERIC.is_chat(str(number)) and NUMERIC.is_chat(f"-{number}")
    assert not NUMERIC.is_person(f"-{number}") and not NUMERIC.is_chat(f"--{number}")
    if NUMERIC.is_person(text):
        assert str(int(text)) == text and text.isascii()


@each_row("name", ["allow", "admins", "groups", "servers"])
@each_row("ids", [frozenset({""}), frozenset({"0"}), frozenset({f" {ADMIN}"}), frozenset({12345678}), frozenset({"*"}), ADMIN, [ADMIN], None])  # fmt: skip
def test_rules_that_could_match_more_than_they_say_are_refused(name: str, ids: Any) -> None:
    """A text in place of a list would let in every part of an id; an empty entry, all who are nobody."""
    with pytest.raises(ValueError, match=name):
        Rules(**{name: ids})


@each_row("server", [None, "", " ", "-1", CLUB, "Adas server", "0" + SERVER, int(SERVER)])
def test_a_server_that_is_no_id_is_refused(server: Any) -> None:
    """An empty one would be every message's that comes from no server."""
    with pytest.raises(ValueError, match="servers"):
        Rules(servers=frozenset({server}))


def test_the_operator_hears_of_channels_that_nobody_can_use_or_look_after() -> None:
    """A bot that answers nobody looks broken; the line says why and what to do."""
    silent, open_club, orphan = warnings(
        {
            "console": Rules(open_to_all=True),
            "telegram": RULES["telegram"],
            "family": Rules(),
            "club": Rules(servers=frozenset({CLUB.removeprefix("-")})),
            "work": Rules(allow=frozenset({FRIEND})),
        }
    )
    assert silent.startswith("family: nobody may talk to it") and "numeric user id" in silent
    assert open_club.startswith("club: it has no admin")
    assert orphan.startswith("work: it has no admin") and "admins" in orphan


async def test_ids_need_be_no_numbers_and_may_hold_colons() -> None:
    """As Matrix writes them: `@ada:example.org` in `!room:example.org`."""
    matrix = IdFormat(person=re.compile(r"@[^\s:]+:\S+"), chat=re.compile(r"![^\s:]+:\S+"))
    rules = Rules(
        allow=frozenset({"@ada:example.org"}),
        admins=frozenset({"@root:example.org"}),
        groups=frozenset({"!room:example.org"}),
        ids=matrix,
    )
    judge = policy({"matrix": rules})
    assert judge.ids("matrix") is matrix
    with pytest.raises(ValueError, match="allow"):
        Rules(allow=frozenset({"@ada"}), ids=matrix)
    cases: list[tuple[str, str, Literal["private", "group"], Verdict]] = [
        ("@ada:example.org", "@ada:example.org", "private", "take"),
        ("@ada:example.or", "@ada:example.or", "private", "stranger"),
        ("@bob:example.org", "!room:example.org", "group", "take"),
        ("@bob:example.org", "!other:example.org", "group", "ignore"),
    ]
    for author, chat, kind, verdict in cases:
        said = replace(PLAIN, channel="matrix", chat=chat, chat_kind=kind, author_id=author, addressed=True)
        assert await judge.judge(said, Store()) == verdict, (author, chat)
        assert Place.from_session_key(said.place.session_key) == said.place
    assert judge.is_admin(replace(PLAIN, channel="matrix", author_id="@root:example.org"))


@pytest.mark.parametrize(
    ("author", "decided", "taken"),
    [
        (f"telegram.{FRIEND}", None, True), (f"telegram.{FRIEND}", "blocked", False), (f"telegram.{ADMIN}", None, True),
        (f"telegram.{STRANGER}", None, False), (f"telegram.{STRANGER}", "allowed", True), ("console.ada", None, True),
        (f"web-a.telegram.{FRIEND}", None, False), (f"gone.{FRIEND}", None, False), (FRIEND, None, False),
        (f"telegram.{FRIEND}\n", None, False), (f"telegram.0{FRIEND}", None, False), (f"telegram2.{ADMIN}", None, False),
    ],
)  # fmt: skip
async def test_a_visitor_may_speak_as_long_as_their_account_may(
    author: str, decided: Literal["allowed", "blocked"] | None, taken: bool
) -> None:
    """On the page everybody is somebody of another channel, in private, and by themselves nobody is an admin."""
    rules = {**RULES, "web-a": Rules(on_behalf=True, ids=FORMATS["web"])}
    policy, store = Policy(rules, monotonic=lambda: 0.0), Store()
    if decided is not None:
        store.decided["telegram", "person", author.partition(".")[2]] = decided
    said = Inbound(
        channel="web-a", platform="web", bot_id="web-a", update_key="1", chat=author, chat_kind="private",
        author_id=author, author_name="", message_id="1", text="CDFG-2345", sent_at=0,
    )  # fmt: skip
    assert await policy.may_speak(said, store) == taken
    assert await policy.judge(said, store) == ("take" if taken else "ignore")
    assert not policy.is_privileged(said)
    for elsewhere in (replace(said, chat=f"telegram.{GUEST}"), replace(said, chat_kind="group")):
        assert not await policy.may_speak(elsewhere, store)


@each_row(("author", "admin"), [
        (f"telegram.{ADMIN}", True), (f"telegram.{FRIEND}", False), (f"telegram.{ADMIN}0", False), ("telegram.", False),
        (f"elsewhere.{ADMIN}", False), (ADMIN, False), (f"web-a.telegram.{ADMIN}", False), ("console.you", True),
        ("console.ada", False), ("console.", False),
    ])  # fmt: skip
def test_an_admin_is_one_on_the_page_where_the_page_says_so(author: str, admin: bool) -> None:
    """With the rights of the very account that signed in, on its own channel; nowhere else does that word count."""
    terminal = Rules(open_to_all=True, operator="you", ids=FORMATS["console"])
    policy = Policy(
        {**RULES, "console": terminal, "web-a": Rules(on_behalf=True, ids=FORMATS["web"])}, monotonic=lambda: 0.0
    )
    said = Inbound(
        channel="web-a", platform="web", bot_id="web-a", update_key="1", chat=author, chat_kind="private",
        author_id=author, author_name="", message_id="1", text="/jobs", sent_at=0, as_admin=True,
    )  # fmt: skip
    assert policy.is_admin(said) == admin
    if admin:
        assert policy.account(said) == tuple(author.split("."))
    for other in (replace(said, as_admin=False), replace(said, forwarded=True), replace(said, edited=True)):
        assert not policy.is_admin(other)
    at_home = replace(said, channel="telegram", author_id=FRIEND, chat=FRIEND)
    assert not policy.is_admin(at_home) and policy.is_admin(replace(at_home, author_id=ADMIN, as_admin=False))
    assert not policy.is_admin(replace(said, channel="console", author_id="you")), "not in the terminal itself"
