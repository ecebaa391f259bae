"""Model servers on this machine: querying their capabilities."""
