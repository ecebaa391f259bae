"""Code shared by the adapters of all protocols."""
