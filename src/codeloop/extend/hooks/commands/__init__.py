"""Command hooks: people's own programs, run with JSON on stdin as Claude Code runs them."""
