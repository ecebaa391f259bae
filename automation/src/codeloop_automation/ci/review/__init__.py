"""Reviews of pull requests: findings on changed lines that a command proves, each posted once."""
