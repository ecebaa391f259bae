"""Dialogs above a conversation: lists to choose from, settings, help."""
