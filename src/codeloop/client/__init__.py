"""Clients of a project: in this process or over HTTP, and code shared by all user interfaces."""
