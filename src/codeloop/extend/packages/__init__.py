"""Extension packages: folders with tools, hooks, agents, commands, skills and MCP servers."""
