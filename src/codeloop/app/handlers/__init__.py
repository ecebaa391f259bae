"""One module a resource: what each operation does."""
