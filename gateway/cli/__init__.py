"""The commands of the command line, one file for each subject.

Each reads the configuration, does its work and ends with a code that says how it went. Modules that only one command
needs are imported inside it, so that no other waits for them.
"""
