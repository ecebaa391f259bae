"""Files, search and processes in a work tree."""
