"""MCP servers: configured, cached, started at the first call, offered as tools."""
