"""What language servers know of the code."""
