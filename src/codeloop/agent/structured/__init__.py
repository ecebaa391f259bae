"""Answers as JSON of a given schema: asked for in a prompt, checked,
and corrected by the model if they are wrong.
"""
