"""Completion in the prompt."""
