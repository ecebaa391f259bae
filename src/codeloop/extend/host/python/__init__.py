"""The host program of Python extensions. It imports only what it needs of codeloop."""
