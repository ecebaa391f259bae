"""Reads the stored sessions of other agents, each in the form of its program."""
