"""Composition of the program: App (process), Project (directory), Runs (turns),
and the handlers.
"""
