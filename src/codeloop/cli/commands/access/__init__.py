"""Commands about access: API keys and sign-in, trust in directories, permissions."""
