"""What is read of the user's git repository."""
