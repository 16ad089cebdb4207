"""Pure parsers for the formats in which Remora and other programs store memory, one for each format.

Invariant: a parser never fails on the content of a file. Whatever it leaves out it names, with its place and the
reason.
"""
