"""What sandboxed commands reach: hosts by name, through a proxy of ours."""
