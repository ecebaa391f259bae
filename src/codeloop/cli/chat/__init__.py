"""The conversation, line by line."""
