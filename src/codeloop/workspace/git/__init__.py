"""The user's git repository: what is read of it, its comparison with the work tree,
and its further work trees.
"""
