"""Markdown pages of users and projects: agents and commands, in our form and Claude Code's,
and notes of memory.
"""
