"""Language models: catalog, credentials, adapters, retry, scripted and replayed models."""
