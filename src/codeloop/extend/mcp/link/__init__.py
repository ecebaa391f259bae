"""Reaching a server: its program or address, the transport, the connection. Here the package `mcp` is used."""
