"""Watching a work tree for changed files while a client follows."""
