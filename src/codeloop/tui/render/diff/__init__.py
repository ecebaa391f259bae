"""Rendering of diffs: parsing, word comparison, unified or side by side."""
