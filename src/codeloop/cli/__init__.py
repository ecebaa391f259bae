"""One module a command: flags in, text out."""
