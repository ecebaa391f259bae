"""Pseudo-terminals."""
