"""Networking: HTTP/1.1 to one origin, server-sent events, proxies, TLS, local and public addresses."""
