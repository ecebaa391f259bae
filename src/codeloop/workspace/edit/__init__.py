"""Edits: found in a file, applied, and patches."""
