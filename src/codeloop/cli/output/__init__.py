"""What a command shows."""
