"""Formatters and language servers of a project, set up when the first file is edited."""
