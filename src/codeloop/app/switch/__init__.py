"""Takes over what users have in other agents: sessions, settings, pages and keys of their homes."""
