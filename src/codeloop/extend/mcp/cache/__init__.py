"""Data on servers that needs none to be started: definitions, cached listings, last failures."""
