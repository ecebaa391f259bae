"""Keys: stored, or found in the environment."""
