"""What differs between the versions of the protocol: how each writes what the agent has to say."""
