"""The adapter for OpenAI chat completions."""
