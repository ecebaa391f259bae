"""Transports to servers: programs and addresses, connections, errors. Uses the package `mcp`."""
