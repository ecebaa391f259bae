"""Vi editing of a text buffer."""
