"""What is looked at without changing anything: what a rule decides, and whether everything here works."""
