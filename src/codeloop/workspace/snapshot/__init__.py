"""Snapshots of the work tree, and what undo restores from them."""
