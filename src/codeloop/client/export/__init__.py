"""A session as a file that a person reads."""
