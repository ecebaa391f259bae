"""Diffs as rows: parsed, their words compared, unified or side by side."""
