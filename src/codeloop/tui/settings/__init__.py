"""The user's settings, the start parameters, and what is remembered between runs: models,
pinned sessions.
"""
