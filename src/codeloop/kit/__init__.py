"""Small helpers that import no other room."""
