"""Dialogs to set up providers: with keys, local servers, or the user's own server;
each is tried at once.
"""
