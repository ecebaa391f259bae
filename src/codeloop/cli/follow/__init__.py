"""Following a session: its events are shown and counted, its requests answered,
its subagents waited for.
"""
