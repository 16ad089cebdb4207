"""Servers of the Model Context Protocol, run as programs of their own: one that behaves, and one that does not."""
