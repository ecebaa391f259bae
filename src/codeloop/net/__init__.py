"""HTTP/1.1 to one origin, server-sent events, proxies, TLS, and which host is this machine."""
