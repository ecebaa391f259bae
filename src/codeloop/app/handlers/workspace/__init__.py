"""Handlers of files, searches, version control and terminals."""
