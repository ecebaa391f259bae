"""Colours by what they are for, and where they come from."""
