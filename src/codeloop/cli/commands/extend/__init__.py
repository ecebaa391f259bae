"""Commands about extensions: agents, commands, skills, plugins,
MCP servers and language servers.
"""
