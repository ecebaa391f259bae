"""The client of the protocol: messages over pipes, document synchronisation, diagnostics."""
