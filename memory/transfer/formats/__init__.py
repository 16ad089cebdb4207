"""Pure parsers for the formats in which Remora and other programs store memory, one for each format.

Invariant: a parser never fails on the content of a file. It names everything it leaves out, with place and reason.
"""
