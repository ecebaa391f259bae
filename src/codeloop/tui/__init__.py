"""The terminal UI: a client like any other, in this process or of a server."""
