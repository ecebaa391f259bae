"""A table of jobs, each done once: a repository, what is to be done in it, and the checks that prove it."""
