"""Lists as data the actions of people, programs and models: doors read, make a transaction and render."""
