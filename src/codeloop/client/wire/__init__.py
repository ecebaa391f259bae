"""The HTTP client's transport: the connections to one server, their state, and errors; lines over stdin and stdout."""
