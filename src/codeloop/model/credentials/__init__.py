"""Keys and credentials: stored, in the environment, from sign-ins, and from clouds."""
