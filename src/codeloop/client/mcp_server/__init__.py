"""codeloop as an MCP server: other agents and editors prompt sessions of it.
A client like any other.
"""
