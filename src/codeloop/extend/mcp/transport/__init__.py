"""Reaching a server: its program or address, the connection, its errors. Here the package `mcp` is used."""
