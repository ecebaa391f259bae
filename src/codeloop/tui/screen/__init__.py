"""The parts of the screen around and below what is said."""
