"""A Discord to test against: gateway, REST and files as the bot has them, and over `/control/` everything people do.

In a test of its own process: `async with serving() as discord:`. As another process, which survives the product that
is killed: `async with running() as discord:`, or by hand `python -m tests.platforms.discord`, which prints its address
when it listens. Both give a `Control` (client.py), whose methods are the whole of what a test can do:

    async with serving() as platform:
        with reached(platform):                                  # discord.py's own addresses lead here meanwhile
            ...                                                  # log in with platform.token, base is platform.api_url
        said = await platform.say("hello", user=7)               # a direct message; channel=GENERAL for the guild's
        await platform.wait(bot_messages=1, channel=said.channel)
        assert await platform.texts(said.channel) == ["hello too"]
        assert (await platform.state())["violations"] == []

There are a guild GUILD with the text channel GENERAL and the owner OWNER; users come into being when they speak.

What it keeps to: the gateway's HELLO, IDENTIFY, HEARTBEAT, RESUME, RECONNECT and INVALID SESSION with zlib-stream and
close codes 4004 and 4014; events by intents, without content where the message content intent is missing; ids that tell
the time, newest-first pages, nonces, replies, threads and forum posts, permissions by channel, rate-limit buckets, the
rules of interactions (three seconds, a second answer, the token's quarter of an hour, ephemeral answers, a follow-up that
completes a deferred answer), limits of texts, buttons, forms, choices and commands, signed addresses of files that
expire. What it leaves out: voice, presences, reactions (told and forgotten), permission overwrites of roles, embeds of
links (recorded as violations where they were not suppressed); routes it does not play answer 501.

Modules: model (the things), world (what one bot can know), gateway (who listens), bodies (what requests hold, judged),
rest and interactions (what the API does), limits, faults, ledger, people (what people do), control (the test's side),
server (routes), client and deeds (Control's two halves).
"""

from __future__ import annotations

from tests.platforms.discord.client import GENERAL, GUILD, OWNER, Control, Said, reached, running
from tests.platforms.discord.server import serving

__all__ = ["GENERAL", "GUILD", "OWNER", "Control", "Said", "reached", "running", "serving"]
