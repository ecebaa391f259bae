"""What a command works with: a project in this process, or a server."""
