"""Handlers of the project: configuration, providers, questions."""
