"""Builds requests to the model: system prompt, messages, tools, and what of them is cached."""
