"""Hooks: extensions and users' own programs called at points of a session."""
