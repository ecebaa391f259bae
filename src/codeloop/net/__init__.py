"""What the network's clients and servers share: which host is this machine, how a host is written."""
