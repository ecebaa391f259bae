"""What clients ask about a session as a whole."""
