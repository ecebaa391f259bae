"""The adapter for Google's Interactions API."""
