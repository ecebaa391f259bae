"""Which files the arguments of programs name: rows of data, and their interpreter."""
