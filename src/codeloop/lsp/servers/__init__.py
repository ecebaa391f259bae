"""The table of language servers, and which of them serve a file."""
