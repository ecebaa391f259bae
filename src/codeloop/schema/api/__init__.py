"""What the operations take and return, beyond what is stored."""
