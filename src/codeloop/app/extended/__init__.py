"""Connects a project with its extensions: MCP servers' tools, extensions' tools and hooks."""
