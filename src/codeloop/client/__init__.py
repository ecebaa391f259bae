"""Clients of a project, in this process or over HTTP, and code that all user interfaces share."""
