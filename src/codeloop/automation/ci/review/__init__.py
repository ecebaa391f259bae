"""Reviews: findings that a run has proved, on lines that changed, each posted once."""
