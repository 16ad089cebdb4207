"""Discord: `channel` is the bot itself.

`gateway` (the only one that imports discord.py), `intake` (the order and the position of events) and `interactions`
receive; `show` sends; `rest` makes the requests, and `payloads` reads and writes the JSON of all of them.
"""

from channels.discord.channel import DiscordChannel, probe, servers
from channels.discord.rest import API, DiscordBot, DiscordRateLimited

__all__ = ["API", "DiscordBot", "DiscordChannel", "DiscordRateLimited", "probe", "servers"]
