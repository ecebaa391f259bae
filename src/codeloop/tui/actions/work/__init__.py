"""What was done to files: the changes of a session, and work trees."""
