"""SQLite: append, read, follow."""
