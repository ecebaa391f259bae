"""The OpenAPI document of the server: its paths, schemas and error responses."""
