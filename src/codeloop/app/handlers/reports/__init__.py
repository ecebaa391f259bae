"""Handlers of reports on sessions: context, cost, budgets, statistics, and sessions for sharing."""
