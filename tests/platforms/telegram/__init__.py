"""A Telegram to test against: the Bot API over HTTP, and over `/control/` everything people and fate do there.

In a test of its own process: `async with serving() as telegram:`. As another process, which survives the product that
is killed: `async with running() as telegram:`, or by hand `python -m tests.platforms.telegram --token 123:abc`, which
prints its address when it listens. Both give a `Control` (client.py), whose methods are the whole of what a test can do:

    async with serving() as telegram:
        bot = Bot(telegram.token, session=AiohttpSession(api=TelegramAPIServer.from_base(telegram.url)))
        said = await telegram.say("hello", user=7)                      # an update waits for getUpdates
        await telegram.wait(bot_messages=1, chat=7)                     # TimeoutError tells what was there instead
        state = await telegram.state()
        state["chats"]["7"]["messages"][-1]["text"]

What it keeps to: requests are read with aiogram's own method models, texts and keyboards are judged by teremok's rules,
errors have Telegram's words, getUpdates really waits, a second poller ends the first with 409, an offset far above the
last update is answered from the queue's head and confirms nothing (as tdlib's queue does), texts are trimmed, an edit
without a keyboard removes the keyboard, a topic's messages reply to the message that opened the topic, a reply in a
supergroup carries a thread id that is no topic, an album is an update for each of its parts, a photo comes in several
sizes, a file above 20 MB can't be fetched, a menu is looked up scope by scope, a draft goes when the message comes, a
webhook gets its updates in order by chat and again until it takes them. What it leaves out: text sent with a parse_mode is judged, but kept as
it was written; entities are found only in what people say (mentions and commands); bots in one group don't see
each other; a webhook's address is not tried when it is set, and a method in its answer is not called; the words of a
draft's refusals are those bots report, where they do; methods it does not play answer 501.

Modules: world (people, chats, messages of one bot), media (what messages hold beside words), drafts, menus, updates (its
queue and polls), webhook (posting them), limits (flood control), methods (what the Bot API does to the world), wire
(bodies to calls, results to answers), faults (what goes wrong on purpose), control (the test's side), server (routes), client.
"""

from __future__ import annotations

from tests.platforms.telegram.client import Album, Control, File, Said, running
from tests.platforms.telegram.server import serving

__all__ = ["Album", "Control", "File", "Said", "running", "serving"]
