"""Themes: colours by purpose, and their files."""
