"""Signing in at remote servers by OAuth: what is stored, how it is used and renewed, how a person does it."""
