"""HTTP, server-sent events and WebSockets over the operation table."""
