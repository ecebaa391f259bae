"""The terminal: its capabilities, input and output."""
