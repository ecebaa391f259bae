"""Pictures as terminals draw them."""
