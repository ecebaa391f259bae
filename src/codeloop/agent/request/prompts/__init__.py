"""System prompts, as prose."""
