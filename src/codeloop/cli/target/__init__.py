"""Opening what a command works with: a project in this process or a server, its sessions, agents,
models and log.
"""
