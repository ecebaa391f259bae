"""The versions of the protocol: each converts the agent's messages to its own form."""
