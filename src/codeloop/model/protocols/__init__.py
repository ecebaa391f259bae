"""One folder for each wire protocol: writing requests, and reading answers."""
