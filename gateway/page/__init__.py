"""The web page: sign-in, conversations, and what is remembered, as HTML that works without a script."""
