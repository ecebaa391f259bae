"""Connects a project with its extensions and MCP servers: starts them,
and installs their tools and hooks.
"""
