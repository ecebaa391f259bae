"""Networking: HTTP/1.1 to one origin, server-sent events, proxies, TLS,
and which addresses are public.
"""
