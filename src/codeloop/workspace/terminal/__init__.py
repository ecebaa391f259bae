"""Terminals for clients: programs on pseudo-terminals, and their output."""
