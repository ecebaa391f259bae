"""The event streams."""
