"""Chat platforms to test against: servers that behave like the real ones, each in a process of its own."""
