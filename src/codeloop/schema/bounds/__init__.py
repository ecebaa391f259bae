"""Limits of parts that a short run does not load, a module for each part;
the others are in `schema/limits.py`.
"""
