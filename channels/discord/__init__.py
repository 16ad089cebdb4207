"""Discord: `channel` is the bot itself.

In come `gateway` (the only one that imports discord.py), `intake` (in what order, up to where) and `interactions`; out
goes `show`; `rest` are the requests, `payloads` the JSON of all of them.
"""

from channels.discord.channel import DiscordChannel, probe, servers
from channels.discord.rest import API, DiscordBot, DiscordRateLimited

__all__ = ["API", "DiscordBot", "DiscordChannel", "DiscordRateLimited", "probe", "servers"]
