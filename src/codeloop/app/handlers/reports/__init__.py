"""Handlers of reports on sessions: context, cost, search, statistics."""
