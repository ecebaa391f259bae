"""Keys: which command each runs, in which order they are taken, and how somebody types."""
