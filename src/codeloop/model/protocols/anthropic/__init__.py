"""The adapter for Anthropic messages."""
