"""Programs and shell commands, each run with its process tree."""
