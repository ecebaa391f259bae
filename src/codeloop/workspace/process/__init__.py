"""Programs and shell commands, with their process trees."""
