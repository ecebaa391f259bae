"""The Agent Client Protocol, version 1: editors show and steer sessions over stdin and stdout."""
