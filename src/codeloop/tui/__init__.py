"""The terminal UI: a client of the project in this process or on a server."""
