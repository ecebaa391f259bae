"""Agents, commands, skills and MCP servers: what extends codeloop."""
