"""Reads the forms in which a configuration may be written,
and converts them to that of `schema.config`.
"""
