"""What models and prompts get of servers: tools, the search among them, resources, prompts."""
