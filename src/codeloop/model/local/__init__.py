"""Model servers on this machine: what they can do, asked from themselves."""
