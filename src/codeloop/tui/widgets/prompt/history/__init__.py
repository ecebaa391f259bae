"""Prompts that were sent, drafts and the stash, in files."""
