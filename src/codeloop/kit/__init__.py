"""Small pure helpers. Imports nothing of ours."""
