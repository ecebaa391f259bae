"""Hooks: extensions and the configuration's rows called at points of a session."""
