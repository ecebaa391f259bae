"""Subagents: how they are started, how many may run and for how long, and what they may do."""
