"""Commands that certainly change nothing: rows of harmless options, and the check of a command against its row."""
