"""Handlers of further work trees: made, looked at, merged, removed; and the reference's other name for them: copies."""
