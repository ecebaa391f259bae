"""Project trust: stores the trusted directories, and limits the configuration of the others."""
