"""Commands about a session's work: its changed files, its plan, and work trees."""
