"""The network of sandboxed commands: a proxy of ours that connects to listed hosts only."""
