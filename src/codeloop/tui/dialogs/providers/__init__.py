"""Where models come from: providers with keys, servers on this machine, one of your own; each is tried at once."""
