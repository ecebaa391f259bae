"""Agents and commands written as Markdown pages, in our format and Claude Code's."""
