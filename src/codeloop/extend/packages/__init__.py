"""Packages of extensions: folders that bring tools, hooks, agents, commands, skills and MCP servers together."""
