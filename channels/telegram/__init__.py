"""Telegram: `channel` is the bot itself, `updates` reads its updates, `send` shows its messages, `wire` makes its
requests, `menu` lists its commands; `postponed` imports aiogram, before all others.
"""

from channels.telegram import postponed  # isort: skip
from channels.telegram.channel import TelegramChannel, Webhook, probe
from channels.telegram.wire import API, TelegramBot, TelegramRateLimited, Wire

__all__ = ["API", "TelegramBot", "TelegramChannel", "TelegramRateLimited", "Webhook", "Wire", "postponed", "probe"]
