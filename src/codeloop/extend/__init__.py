"""User extensions: agents, commands, skills, hooks, plugins, and MCP servers."""
