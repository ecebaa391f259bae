"""Handlers that only clients of a server request."""
