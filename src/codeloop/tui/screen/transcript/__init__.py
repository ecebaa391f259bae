"""The conversation on the screen: only what is visible is drawn."""
