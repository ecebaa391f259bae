"""Searches with ripgrep, and lists of files."""
