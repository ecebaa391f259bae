"""Handling of the model's answers: streamed text, calls written as text, usage, and turns that end too early."""
