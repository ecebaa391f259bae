"""Servers' tools, tool search, resources and prompts, as offered to models and users."""
