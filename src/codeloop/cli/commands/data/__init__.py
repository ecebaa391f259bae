"""Files that commands bring along."""
