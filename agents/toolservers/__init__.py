"""Servers of the Model Context Protocol as sources of tools."""
