"""What the commands of the terminal UI do."""
