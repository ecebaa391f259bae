"""Requests to model services: HTTP/1.1, proxies, event streams."""
