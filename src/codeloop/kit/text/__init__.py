"""Text processing: truncation, terminal rendering, hiding of secrets."""
