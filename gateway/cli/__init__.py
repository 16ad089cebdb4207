"""The commands of the command line, a file for those that are about the same thing.

Each reads the configuration, does its work and ends with a code that says how it went. What only one command needs is
imported inside it, so that no other waits for it.
"""
