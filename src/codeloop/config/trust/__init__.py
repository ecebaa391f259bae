"""Project trust: the trusted directories, and what untrusted ones may set."""
