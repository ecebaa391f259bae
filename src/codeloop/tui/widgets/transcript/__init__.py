"""The conversation on the screen."""
