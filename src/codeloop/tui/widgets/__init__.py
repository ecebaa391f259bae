"""What stands on the screen."""
