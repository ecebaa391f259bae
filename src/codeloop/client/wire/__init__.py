"""The HTTP client's transport: one origin, its connections, and its errors."""
