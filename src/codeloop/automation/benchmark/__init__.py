"""Tasks of the user's own, done by several agents and models side by side: `codeloop bench`."""
