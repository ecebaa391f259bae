"""Handling of the model's answers: streamed text, usage, changed files, other models,
and turns that end too early.
"""
