"""What a shell command would do, by analysis."""
