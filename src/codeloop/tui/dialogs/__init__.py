"""What opens above a conversation: lists to choose from, settings, help."""
