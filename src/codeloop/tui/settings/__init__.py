"""The user's settings, and the start parameters."""
