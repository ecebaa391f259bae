"""What a terminal can do, and how it says so."""
