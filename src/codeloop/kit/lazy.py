"""The one place where modules of ours are imported late: tables name what their rows need, the first use loads it."""

from importlib import import_module  # nothing else: a signal may come before this is loaded


def load(target: str):
    """Return what `room.module:name` means."""
    module, _, name = target.partition(":")
    return getattr(import_module(f"codeloop.{module}"), name)
