"""The web page: sign-in, conversations and memories, as HTML that works without a script."""
