"""Static analysis of shell commands."""
