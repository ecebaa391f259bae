"""One prompt from the command line, to its end."""
