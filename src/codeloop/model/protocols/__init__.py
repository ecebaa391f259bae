"""One folder for each wire protocol: what is sent, and how the answer is read."""
