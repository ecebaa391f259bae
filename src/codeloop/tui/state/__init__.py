"""The state of shown sessions: events folded into items. Pure."""
