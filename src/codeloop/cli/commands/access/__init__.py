"""What may be done: which directories are trusted, what is always allowed, what was decided."""
