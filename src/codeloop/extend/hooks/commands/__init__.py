"""Command hooks: users' own programs, run with JSON on stdin like in Claude Code."""
