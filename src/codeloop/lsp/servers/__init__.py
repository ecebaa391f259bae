"""The language servers that are known, and which of them serve a file."""
