"""Plays fifteen model servers, each as strict as its vendor, to a running bot.

    python -m bench.vendors --json

The bot is `remora serve` with what `remora init` wrote for each server. People talk with it through the API; each case
is one person with an agent of their own. An answer counts as right if it holds a word that only the scripted model
knows, which it says once the results of its tools have come back to it; a failure counts as right if the person is told
of it, the log names its cause, and the next message is answered.
"""
