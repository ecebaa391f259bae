"""Language models: catalog, credentials, adapters of services' protocols, retries,
and scripted or replayed models.
"""
