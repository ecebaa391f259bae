"""The output format stream-json: JSON Lines that the SDK of Claude Code reads."""
