"""The network of sandboxed commands: hosts by name, through our own proxy."""
