"""Which directories are trusted, and what the others may set."""
