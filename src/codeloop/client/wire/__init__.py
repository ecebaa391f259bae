"""What an HTTP client sends and is answered: one origin, its connections, and its refusals."""
