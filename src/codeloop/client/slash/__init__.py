"""Slash commands shared by all terminals: their names and their answers."""
