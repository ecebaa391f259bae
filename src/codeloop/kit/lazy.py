"""The one place where modules of ours are imported late: tables name what their rows need, the first use loads it."""

from sys import modules  # nothing else: a signal may come before this is loaded


def load(target: str):
    """Import the object that `room.module:name` names."""
    module, _, name = target.partition(":")
    __import__(f"codeloop.{module}")
    return getattr(modules[f"codeloop.{module}"], name)
