"""The Client protocol and its local implementation."""
