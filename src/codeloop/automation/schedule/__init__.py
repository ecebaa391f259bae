"""Prompts that the system's own timers run: `codeloop schedule`."""
