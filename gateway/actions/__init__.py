"""What people, programs and models may do, as data: doors read, make a transaction and render."""
