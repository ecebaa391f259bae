"""What people add to a project, put in place: the tools of MCP servers, the tools and hooks of extensions."""
