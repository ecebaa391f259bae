"""Edits and patches: found in a text, applied, and the syntax checked after them."""
