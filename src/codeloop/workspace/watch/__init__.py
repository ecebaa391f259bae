"""Watching a work tree while somebody wants to know what changes in it."""
