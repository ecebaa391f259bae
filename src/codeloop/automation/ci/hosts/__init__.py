"""What `codeloop ci` asks of a host: GitHub, GitLab, and git alone."""
