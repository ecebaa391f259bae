"""Private git folders: sandboxes write into these, and what git made there is carried
over to the real ones as data.
"""
