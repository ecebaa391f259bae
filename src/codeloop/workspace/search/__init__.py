"""Searches with ripgrep, the index of file names, and the functions and classes of a text."""
