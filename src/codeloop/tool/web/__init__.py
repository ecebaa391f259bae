"""Pages and searches: address checks, the guarded HTTP client, conversion, search services."""
