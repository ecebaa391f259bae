"""What `codeloop ci setup` writes: a file for a host,
which installs codeloop from a commit of its repository.
"""
