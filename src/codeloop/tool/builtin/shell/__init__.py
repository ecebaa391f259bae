"""Tools that run commands."""
