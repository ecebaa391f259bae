"""What commands, events and sent prompts do in the terminal UI, as functions."""
