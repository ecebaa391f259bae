"""Google's application default credentials."""
