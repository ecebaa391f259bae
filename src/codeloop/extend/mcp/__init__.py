"""MCP servers as tools: configured, remembered, started at the first call."""
