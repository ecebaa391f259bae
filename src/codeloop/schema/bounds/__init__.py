"""More rows of the table in `limits.py`, a module for each room that few runs load."""
