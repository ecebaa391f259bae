"""What the user can set, and what the program is started with."""
