"""What can be completed in the prompt."""
