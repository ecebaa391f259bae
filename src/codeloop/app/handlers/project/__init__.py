"""Handlers of a project: its configuration, providers, MCP servers, permissions and questions."""
