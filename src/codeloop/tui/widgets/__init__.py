"""The widgets of the main screen."""
