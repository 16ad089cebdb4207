"""Part of Remora: the chat platforms."""
