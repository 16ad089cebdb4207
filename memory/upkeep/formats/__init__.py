"""What other programs, and we ourselves, write memory down in: pure parsers, one a format.

Invariant: a parser never fails on what stands in a file; whatever it leaves out it names, with its place and why.
"""
