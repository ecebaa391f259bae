"""Repositories that sandboxed commands make, checked before anybody runs git unsandboxed."""
