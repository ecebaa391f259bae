"""The keys of vi, as far as people use them in a prompt."""
