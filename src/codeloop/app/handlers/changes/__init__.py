"""Handlers of the changes that a session made to files: diffs, undo and redo."""
