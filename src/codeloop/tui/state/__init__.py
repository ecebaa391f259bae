"""The state of shown sessions: stored messages and events, folded into the items that the screen shows."""
