"""Language models: catalog, credentials, adapters, retries, and scripted or replayed models for tests."""
