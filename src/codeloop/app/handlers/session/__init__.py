"""Handlers of sessions and their messages."""
