"""The protocol: messages over a program's pipes, documents in step, diagnostics."""
