"""Formatters: which one a file has, and how it is run after an edit."""
