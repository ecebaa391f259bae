"""What is shown of sessions: events folded into items. Pure."""
