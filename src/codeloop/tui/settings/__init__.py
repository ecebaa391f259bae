"""What a person can set, and what the program is started with."""
