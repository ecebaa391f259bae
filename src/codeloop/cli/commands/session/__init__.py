"""`codeloop session`."""
