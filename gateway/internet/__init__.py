"""Reads the web for an agent: pages by their address, and the results of a search."""
