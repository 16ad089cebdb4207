"""Part of Remora: the agents and the language models behind them."""
