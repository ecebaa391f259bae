"""What the adapters of all protocols share."""
