"""Handlers of further git work trees of a project (also called copies in the API): create, inspect,
merge, remove.
"""
