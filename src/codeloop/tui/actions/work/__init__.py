"""Commands about files: the changes of a session, and work trees."""
