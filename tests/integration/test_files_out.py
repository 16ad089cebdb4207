"""Files on their way out: from the row that holds one to what people see, and what becomes of it on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from io import StringIO
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Button, Channel, ChannelError, ChannelUnavailable, File, Outbound, Place, TooLarge
from channels.console import ConsoleChannel, Streams
from channels.discord import DiscordChannel
from channels.telegram import TelegramChannel, TelegramRateLimited, Wire
from gateway.pipeline.delivery import Delivery, pieces, shows
from memory.mailbox import mailbox, outbox
from memory.mailbox.outbox import Outgoing, Part
from memory.service import Service
from memory.store.database import Transaction
from memory.store.sqlite.database import SqliteDatabase
from memory.store.sqlite.migrate import migrations
from tests.kit.discord_bot import Host, bot, command, place, registered, row, running
from tests.kit.fakes import MINUTE, Clock
from tests.kit.patience import SECONDS
from tests.kit.telegram_bot import bot as telegram_bot
from tests.kit.telegram_bot import known, shown
from tests.kit.telegram_bot import place as telegram_place
from tests.kit.telegram_bot import row as telegram_row
from tests.platforms import discord as discords
from tests.platforms import telegram as telegrams
from tests.platforms.discord import GENERAL, GUILD

ADA = 7
EXPORT = File(name="memories.md", data="# What I know\n- you like tea 茶\n".encode())
CHAT = "telegram:7:-"


@pytest.fixture
async def telegram() -> AsyncIterator[telegrams.Control]:
    async with telegrams.serving() as control:
        yield control


@pytest.fixture
async def discord() -> AsyncIterator[discords.Control]:
    async with discords.serving() as control:
        with discords.reached(control):
            yield control


# The row.


async def queue(memory: Service, *sent: Part, session: str = CHAT) -> None:
    def act(tx: Transaction) -> None:
        memory.mailbox.post(tx, Outgoing(session_key=session, pieces=sent, edits="12"))

    await memory.database.write(act)


async def files(memory: Service) -> list[tuple[str, str, bytes | None]]:
    found = await memory.database.read(
        lambda reader: reader.all("select state, file_name, file from outbox order by id")
    )
    return [tuple(one) for one in found]


async def test_row_with_a_file_edits_nothing_and_holds_it_until_it_is_shown(memory: Service) -> None:
    """A file that may be all that is remembered of somebody must not stay in the mailbox."""
    await queue(memory, *pieces(None, "Here it is.", files=[EXPORT]))
    words = await memory.mailbox.take(CHAT)
    assert words is not None and (words.file, words.file_name) == (None, "")
    row = await memory.mailbox.sent(words, "1")
    assert row is not None
    assert (row.text, row.file_name, row.file, row.edits) == ("", EXPORT.name, EXPORT.data, None)
    await memory.mailbox.was_sent(row, "2")
    assert await files(memory) == [("sent", "", None)] * 2


async def test_row_with_a_file_leaves_the_placeholder_to_words(memory: Service) -> None:
    await queue(memory, Part(text="", file_name=EXPORT.name, file=EXPORT.data))
    row = await memory.mailbox.take(CHAT)
    assert row is not None and row.edits is None


async def test_file_of_a_row_that_is_given_up_is_gone(memory: Service) -> None:
    """Nobody will ever ask for it, whichever way it was given up."""
    for number in range(3):
        await queue(memory, Part(text="x", file_name=EXPORT.name, file=EXPORT.data), session=f"telegram:{number}:-")
    first, second = await memory.mailbox.take("telegram:0:-"), await memory.mailbox.take("telegram:1:-")
    assert first is not None and second is not None
    await memory.mailbox.fail_and_notify(first, "too_large", Part(text="sorry"))
    await memory.mailbox.give_up("telegram:1:-", "blocked")
    assert (await files(memory))[:3] == [("dead", "", None), ("dead", "", None), ("pending", EXPORT.name, EXPORT.data)]
    assert await memory.database.write(lambda tx: outbox.purge(tx, "telegram")) == 2


async def test_file_of_unknown_fate_is_kept_for_a_while_only(memory: Service, clock: Clock) -> None:
    """A person may ask for it again, but not for ever."""
    await queue(memory, Part(text="", file_name=EXPORT.name, file=EXPORT.data))
    row = await memory.mailbox.take(CHAT)
    assert row is not None
    await memory.mailbox.offer(row, Part(text="Again?"))
    (first, *_) = await memory.database.read(lambda reader: reader.all("select created_at from outbox order by id"))
    week_later = first["created_at"] + 7 * 24 * 3_600_000
    await memory.database.write(lambda tx: mailbox.begin(tx, alone=True, now=week_later))
    assert (await files(memory))[0] == ("unknown", EXPORT.name, EXPORT.data)
    await memory.database.write(lambda tx: mailbox.begin(tx, alone=True, now=week_later + 1))
    assert (await files(memory))[0] == ("dead", "", None)
    asked = await memory.mailbox.receive(
        platform="telegram", bot_id="1", update_key="again", session_key=CHAT, payload="{}"
    )
    assert asked is not None
    await memory.mailbox.show_again(CHAT, row.id, inbox_id=asked, gone=Part(text="It is gone."))
    assert (await files(memory))[0] == ("dead", "", None)


async def test_rows_of_before_there_were_files_are_sent(tmp_path: Path) -> None:
    """Rows that wait when the program is replaced by a newer one must arrive."""
    path = tmp_path / "old.db"
    old = await SqliteDatabase.open(path, now=1, known=[one for one in migrations() if one.version < 6])
    await old.write(
        lambda tx: tx.run(
            "insert into outbox (session_key, kind, chunk, text, state, run, created_at)"
            " values ('telegram:7:-', 'message', 0, 'hello', 'pending', 'r1', 1)"
        )
    )
    await old.close()
    new = await SqliteDatabase.open(path, now=2)
    row = await new.write(lambda tx: outbox.take(tx, 2, CHAT))
    await new.close()
    assert row is not None
    assert (row.text, row.file_name, row.file) == ("hello", "", None)


# Its pieces.


def screen(limit: Path | None = None) -> ConsoleChannel:
    """A terminal that shows files where it is given a folder for them."""
    ids = count(1)
    return ConsoleChannel(
        person="ada",
        now=lambda: 0,
        new_id=lambda: str(next(ids)),
        streams=Streams(stdin=StringIO(), stdout=StringIO()),
        files=limit,
    )


def test_files_come_behind_the_words_and_the_buttons_stay_with_these() -> None:
    """A caption has room for a quarter of what a message has, so the words never go there."""
    channel = TelegramChannel(id="t", wire=Wire("1:a"), now=lambda: 0)
    sent = pieces(channel, "word " * 2_000, buttons=[Button(label="OK", data="ok")], files=[EXPORT, EXPORT])
    *words, first, second = sent
    assert len(words) == 3
    assert [bool(one.buttons) for one in sent] == [False, False, True, False, False]
    assert all(one.file is None for one in words)
    assert first == second == Part(text="", file_name=EXPORT.name, file=EXPORT.data)


def test_what_a_channel_can_not_show_is_known_before_it_is_promised(tmp_path: Path) -> None:
    """Who asks for a file must read why none came, and not wait for it."""
    telegram = TelegramChannel(id="t", wire=Wire("1:a"), now=lambda: 0)
    discord = DiscordChannel(id="d", token="a.b.c", now=lambda: 0)
    ten = File(name="a.md", data=bytes(10 * 1024 * 1024))
    table: list[tuple[Channel | None, File, bool]] = [
        (telegram, ten, True),
        (telegram, File(name="a.md", data=bytes(50_000_001)), False),
        (discord, ten, True),
        (discord, replace(ten, data=ten.data + b"x"), False),
        (screen(tmp_path), ten, True),
        (screen(), ten, False),
        (None, ten, False),
        (telegram, File(name="a.md", data=b""), False),
    ]
    assert [shows(channel, file) for channel, file, _ in table] == [can for _, _, can in table]


def test_channels_say_what_people_there_can_be_shown() -> None:
    telegram, discord = TelegramChannel.capabilities, DiscordChannel.capabilities
    assert (telegram.hidden, telegram.direct) == (False, True)
    assert (discord.hidden, discord.direct) == (True, False)


# Telegram.


@asynccontextmanager
async def delivering(memory: Service, channel: Channel, clock: Clock) -> AsyncIterator[Delivery]:
    delivery = Delivery(memory, {channel.id: channel}, language="en", now=clock)
    await delivery.take_up(await memory.mailbox.sessions_with_mail())
    try:
        yield delivery
    finally:
        await delivery.drain(seconds=SECONDS)


async def test_file_goes_to_its_topic_as_an_answer(telegram: telegrams.Control) -> None:
    group = -1001234567890
    thread = await telegram.topic(group, "Plans", user=ADA)
    asked = await telegram.say("/memory export", user=ADA, chat=group, thread=thread)
    outbound = telegram_row("*Here*", telegram_place(group, thread), file=EXPORT, reply_to=str(asked.message_id))
    await telegram_bot(telegram).send(replace(outbound, buttons=(Button(label="OK", data="ok"),)))
    message = await shown(telegram, group)
    assert (message["caption"], message["document"]["file_name"]) == ("*Here*", EXPORT.name)
    assert (message["message_thread_id"], message["reply_to_message"]["message_id"]) == (thread, asked.message_id)
    assert message["reply_markup"]["inline_keyboard"][0][0]["callback_data"] == "ok"
    [request] = await telegram.requests("sendDocument")
    assert request["files"] == [[EXPORT.name, len(EXPORT.data)]]
    await telegram.delete_topic(group, thread)
    with pytest.raises(ChannelError) as refused:
        await telegram_bot(telegram).send(outbound)
    assert refused.value.code == "place_gone"


async def test_file_waits_as_long_as_telegram_asks(memory: Service, clock: Clock, telegram: telegrams.Control) -> None:
    """And not a moment less; then it comes once, after its words."""
    await known(telegram)
    await telegram.fault("flood", method="sendDocument", retry_after=1)
    await queue(memory, Part(text="Here:"), Part(text="", file_name=EXPORT.name, file=EXPORT.data))
    channel = telegram_bot(telegram, now=clock)
    async with delivering(memory, channel, clock) as delivery:
        await delivery.settled(CHAT)
        with pytest.raises(TelegramRateLimited):
            await channel.send(telegram_row("too early"))
        assert await telegram.texts(ADA) == ["Here:"]
        clock.at += 1_000
        await telegram.pass_time(1)
        await telegram.wait(chat=ADA, bot_messages=2)
        await delivery.settled(CHAT)
    assert await telegram.files(ADA) == [(EXPORT.name, EXPORT.data)]
    assert (await telegram.state())["violations"] == []
    assert await files(memory) == [("sent", "", None)] * 2


async def test_file_that_may_have_arrived_is_offered_and_shown_when_asked_for(
    memory: Service, clock: Clock, telegram: telegrams.Control
) -> None:
    """Telegram knows no message again, so nobody gets it twice unasked."""
    await known(telegram)
    await telegram.fault("reset", at="after effect", method="sendDocument")
    await queue(memory, Part(text="", file_name=EXPORT.name, file=EXPORT.data))
    async with delivering(memory, telegram_bot(telegram, now=clock), clock) as delivery:
        await delivery.settled(CHAT)
        assert (await files(memory))[0] == ("unknown", EXPORT.name, EXPORT.data)
        offer = await shown(telegram)
        [[button]] = offer["reply_markup"]["inline_keyboard"]
        assert len(await telegram.files(ADA)) == 1
        number = int(button["callback_data"].removeprefix("again:"))
        asked = await memory.mailbox.receive(
            platform="telegram", bot_id="1", update_key="2", session_key=CHAT, payload="{}"
        )
        assert asked is not None
        clock.at += 2_000
        await memory.mailbox.show_again(CHAT, number, inbox_id=asked, gone=Part(text="gone"))
        delivery.wake(CHAT)
        await delivery.settled(CHAT)
    assert await telegram.files(ADA) == [(EXPORT.name, EXPORT.data)] * 2
    assert [state for state, _, _ in await files(memory)] == ["sent", "sent"]


@pytest.mark.parametrize("deed", ["refuse", "status"])
async def test_file_that_telegram_finds_too_large_is_dead_with_a_reason(telegram: telegrams.Control, deed: str) -> None:
    """Whether Telegram says so or what stands before it: to try again would be in vain."""
    await known(telegram)
    await telegram.fault(deed, method="sendDocument", status=413, description="Request Entity Too Large")
    with pytest.raises(TooLarge, match="Too Large") as refused:
        await telegram_bot(telegram).send(telegram_row("", file=EXPORT))
    assert refused.value.certain and not refused.value.retryable


async def test_caption_without_room_is_refused_and_not_cut(telegram: telegrams.Control) -> None:
    """Delivery puts no words beside a file; a caller that does must notice."""
    await known(telegram)
    with pytest.raises(ChannelError, match="caption") as refused:
        await telegram_bot(telegram).send(telegram_row("x" * 1_025, file=EXPORT))
    assert refused.value.certain


# Discord.


async def test_file_of_unknown_fate_is_sent_again_under_its_number(
    memory: Service, clock: Clock, discord: discords.Control
) -> None:
    """Discord says that it has it already."""
    home = await discord.dm(ADA)
    session = place(home).session_key
    await discord.fault("reset", at="after effect", method="send")
    await queue(memory, Part(text="", file_name=EXPORT.name, file=EXPORT.data), session=session)
    async with delivering(memory, bot(discord, now=clock), clock) as delivery:
        await delivery.settled(session)
        assert (await files(memory))[0] == ("pending", EXPORT.name, EXPORT.data)
        clock.at += 1_000
        delivery.wake(session)
        await delivery.settled(session)
    assert await discord.files(home) == [(EXPORT.name, EXPORT.data)]
    assert (await discord.state())["deduplicated"] == 1
    assert [request["files"] for request in await discord.requests("send")] == [[[EXPORT.name, len(EXPORT.data)]]] * 2


async def test_file_is_known_again_in_the_history_by_its_size(discord: discords.Control) -> None:
    """Minutes later numbers are forgotten, and two files without words look alike."""
    home = place(await discord.dm(ADA))
    channel, made_at = bot(discord, now=lambda: 1_700_000_000_000), 1_700_000_000_000 - 60 * MINUTE
    other = row("", home, id=2, made_at=made_at, file=File(name="other.md", data=b"other"))
    await discord.rules(nonce_seconds=0)
    first = await channel.send(row("", home, made_at=made_at, file=EXPORT))
    again = bot(discord, now=lambda: 1_700_000_000_000)
    assert await again.send(replace(other, retried=True)) != first
    assert await again.send(row("", home, made_at=made_at, file=EXPORT, retried=True)) == first
    assert [name for name, _ in await discord.files(int(home.chat))] == [EXPORT.name, "other.md"]


async def test_file_that_answers_a_command_is_for_its_user_alone(discord: discords.Control) -> None:
    """The words take the place of the waiting mark; the file comes behind them, to the same eyes."""
    async with command(discord, user=ADA) as (channel, inbound):
        words = row("Here it is.", inbound.place, ticket=inbound.ticket)
        await channel.send(words)
        await channel.send(replace(words, id=2, chunk=1, text="", file=EXPORT))
    assert await discord.ephemeral(ADA, GENERAL) == ["Here it is.", ""]
    assert await discord.files(GENERAL, user=ADA) == [(EXPORT.name, EXPORT.data)]
    assert await discord.files(GENERAL) == []
    assert (await discord.state())["violations"] == []


async def test_file_that_is_the_whole_answer_takes_the_waiting_marks_place_once(discord: discords.Control) -> None:
    """The same edit once more changes nothing, so it is repeated when nobody knows whether it came."""
    async with command(discord, user=ADA) as (channel, inbound):
        answer = row("All of it:", inbound.place, ticket=inbound.ticket, file=EXPORT)
        await discord.fault("reset", at="after effect", method="edit_original")
        with pytest.raises(ChannelUnavailable) as lost:
            await channel.send(answer)
        assert not lost.value.certain
        await channel.send(replace(answer, retried=True))
    assert await discord.ephemeral(ADA, GENERAL) == ["All of it:"]
    assert await discord.files(GENERAL, user=ADA) == [(EXPORT.name, EXPORT.data)]


async def test_late_file_for_one_person_becomes_a_direct_message(discord: discords.Control) -> None:
    async with command(discord, user=ADA) as (channel, inbound):
        await discord.pass_time(16 * 60)
        await channel.send(row("", inbound.place, chunk=1, ticket=inbound.ticket, file=EXPORT))
    assert await discord.files(GENERAL, user=ADA) == []
    assert await discord.files(await discord.dm(ADA)) == [(EXPORT.name, EXPORT.data)]


async def test_file_goes_to_an_archived_thread(discord: discords.Control) -> None:
    """Discord opens it for what is said in it."""
    thread = await discord.open_thread(GENERAL, "Plans", user=ADA)
    await discord.archive(thread)
    await bot(discord).send(row("", place(GENERAL, thread), file=EXPORT))
    assert await discord.files(thread) == [(EXPORT.name, EXPORT.data)]
    await discord.lock(thread, archived=True)
    with pytest.raises(ChannelError) as refused:
        await bot(discord).send(row("", place(GENERAL, thread), id=2, file=EXPORT))
    assert refused.value.code == "muted"


async def test_file_that_may_not_be_attached_ends_no_chat(discord: discords.Control) -> None:
    """The right to attach is one of its own: what else waits for the chat must still come."""
    await discord.deny(GENERAL, "attach")
    with pytest.raises(ChannelError, match="Attach Files") as refused:
        await bot(discord).send(row("", place(GENERAL), file=EXPORT))
    assert refused.value.code == "channel"
    await bot(discord).send(row("words", place(GENERAL)))
    assert await discord.texts(GENERAL) == ["words"]


@pytest.mark.parametrize("deed", ["refuse", "status"])
async def test_file_that_discord_finds_too_large_is_dead_with_a_reason(discord: discords.Control, deed: str) -> None:
    """Whether Discord says so or what stands before it: to try again would be in vain."""
    await discord.fault(deed, method="send", status=413, code=40005, description="Request entity too large")
    with pytest.raises(TooLarge, match="not sent") as refused:
        await bot(discord).send(row("", place(GENERAL), file=EXPORT))
    assert refused.value.certain and not refused.value.retryable


async def test_wait_for_a_file_is_passed_on_exactly(discord: discords.Control) -> None:
    await discord.fault("flood", retry_after=7.5)
    with pytest.raises(ChannelUnavailable) as limited:
        await bot(discord).send(row("", place(GENERAL), file=EXPORT))
    assert (limited.value.retry_after, limited.value.certain) == (7.5, True)


# The terminal.


async def terminal(channel: ConsoleChannel, *sent: File) -> list[str]:
    for number, file in enumerate(sent):
        await channel.send(Outbound(id=number, place=channel.place, text="", file=file, earlier_run=number > 0))
    assert isinstance(channel._stdout, StringIO)
    return channel._stdout.getvalue().splitlines()


async def test_terminal_never_overwrites_a_file_and_writes_none_twice(tmp_path: Path) -> None:
    """An earlier export may be the only copy; and a row that is shown once more is not a second export."""
    folder = tmp_path / "data" / "exports"
    newer, newest = replace(EXPORT, data=b"newer"), replace(EXPORT, data=b"newest")
    told = await terminal(screen(folder), EXPORT, newer, EXPORT, newer, newest)
    names = ["memories.md", "memories-2.md", "memories.md", "memories-2.md", "memories-3.md"]
    assert [line for line in told if line.startswith("/")] == [str(folder / name) for name in names]
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == {"memories.md": EXPORT.data, "memories-2.md": b"newer", "memories-3.md": b"newest"}
    assert (folder.stat().st_mode & 0o777, (folder / "memories.md").stat().st_mode & 0o777) == (0o700, 0o600)


@given(st.text(st.one_of(st.sampled_from("a./\\\n\x00"), st.characters(codec="utf-8")), max_size=20))
def test_file_stays_in_its_folder_whatever_it_is_called(name: str) -> None:
    """A name is data, and may come from what somebody said."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(terminal(screen(Path(folder, "exports")), File(name=name, data=b"x")))
        assert [path.name for path in Path(folder).iterdir()] == ["exports"]
        assert [path.read_bytes() for path in Path(folder, "exports").iterdir()] == [b"x"]


async def test_file_that_can_not_be_written_is_told_and_leaves_no_part(tmp_path: Path) -> None:
    """The row is given up with a reason, and the terminal goes on."""
    blocked = tmp_path / "exports"
    blocked.write_text("no folder")
    with pytest.raises(ChannelError, match=r"memories\.md can't be written") as refused:
        await terminal(screen(blocked), EXPORT)
    assert refused.value.certain and not refused.value.retryable
    with pytest.raises(ChannelError, match="shows no files"):
        await terminal(screen(), EXPORT)


# Links.


@pytest.mark.parametrize(
    ("chat", "thread", "message", "link"),
    [
        ("-1001234567890", None, "45", "https://t.me/c/1234567890/45"),
        ("-1001234567890", "12", "45", "https://t.me/c/1234567890/12/45"),
        ("-1001234567890", "1", "45", "https://t.me/c/1234567890/45"),
        ("-1000000000001", None, "45", "https://t.me/c/1/45"),
        ("-1000000000000", None, "45", None), ("-1001", None, "45", None), ("-4567", None, "45", None),
        ("7", None, "45", None), ("7", "12", "45", None), ("", None, "45", None), ("--1", None, "45", None),
        ("nobody", None, "45", None), ("-1001234567890", None, "", None), ("-1001234567890", None, "i77", None),
    ],
)  # fmt: skip
def test_telegram_links_to_messages_of_supergroups_only(
    chat: str, thread: str | None, message: str, link: str | None
) -> None:
    """A private chat's or a basic group's messages have no address."""
    channel = TelegramChannel(id="telegram", wire=Wire("1:a"), now=lambda: 0)
    assert channel.link(Place(channel="telegram", chat=chat, thread=thread), message) == link


async def test_discord_links_to_messages_of_places_it_knows(discord: discords.Control) -> None:
    """Without a request: a link is told beside each of a list of memories."""
    base = "https://discord.com/channels"
    channel = bot(discord)
    assert channel.link(place(GENERAL), "45") is None  # nothing is known before it runs
    thread = await discord.open_thread(GENERAL, "Plans", user=ADA)
    private = await discord.open_thread(GENERAL, "Secret", user=ADA, private=True)
    async with running(channel, Host()) as host:
        await registered(discord)
        home = (await discord.say("hello", user=ADA)).channel
        await host.hears()
        before = (await discord.state())["requests"]
        table = {
            (place(GENERAL), "45"): f"{base}/{GUILD}/{GENERAL}/45",
            (place(GENERAL, thread), "45"): f"{base}/{GUILD}/{thread}/45",
            (place(private), "45"): f"{base}/{GUILD}/{private}/45",
            (place(home), "45"): f"{base}/@me/{home}/45",
            (place(1), "45"): None,
            (place(GENERAL), "no id"): None,
            (Place(channel="discord", chat="nobody"), "45"): None,
            (Place(channel="discord", chat=str(GENERAL), thread="x"), "45"): None,
        }
        assert {asked: channel.link(*asked) for asked in table} == table
        assert (await discord.state())["requests"] == before
    assert channel.link(place(GENERAL), "45") is None


def test_terminal_has_no_links() -> None:
    assert screen().link(screen().place, "id1") is None
