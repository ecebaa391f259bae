"""Follows what a session does, and shows it."""
