"""Keys: the commands that they run, their dispatch in the order of typing,
and keys that come too early.
"""
