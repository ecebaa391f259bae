"""The adapter for OpenAI's Responses protocol."""
