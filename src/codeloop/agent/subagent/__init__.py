"""Subagents: started, supervised, limited."""
