"""The typed client: a module a resource, a function an operation.

Written by scripts/generate_client.py; not to be edited.
"""
