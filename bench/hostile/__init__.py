"""Throws hostile inputs at a running bot, by every way in, and measures what the others notice.

Run `python -m bench.hostile [--json] [--only NAME ...] [--short] [--list]`. The bot is `remora serve` in a process of its
own, with the files that `remora init` writes and what an operator adds to them: a bot on Telegram and on Discord, the
page, the API, a tool server and `fetch_url`. Platforms, model, tool server and web server are on this machine; the web
server has a public address in a network of its own (`unshare`), where this user may make one.

For each input the bench tells the longest time that `/readyz` waited meanwhile, by how much the process grew (children
apart), which answers were 5xx, which loops and handlers ended by an error, and how long another person waited for an
answer. Exit code 1 when an aim is missed.
"""
