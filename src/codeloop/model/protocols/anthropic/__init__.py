"""The adapter for Anthropic's messages protocol, also for Claude on Vertex AI."""
