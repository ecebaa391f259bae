"""Handlers of further work trees (the reference also calls them copies): create, inspect, merge, remove."""
