"""Watching folders for changes: inotify itself, and the changed files of a work tree."""
