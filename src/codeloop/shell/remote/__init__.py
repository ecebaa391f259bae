"""Which commands act on other machines and services."""
