"""The hosts of `codeloop ci`: GitHub, GitLab, and plain git."""
