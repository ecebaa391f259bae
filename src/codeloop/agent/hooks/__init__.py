"""Hooks during a turn: requests, permissions, prompts, the end;
and the model that judges for hooks and goals.
"""
