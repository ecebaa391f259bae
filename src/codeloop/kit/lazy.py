"""Lazy imports for tables whose rows name their target as a string."""

from sys import modules  # nothing else: a signal may come before this is loaded


def import_module(module: str) -> object:
    """Import the module that `room.module` names."""
    __import__(f"codeloop.{module}")
    return modules[f"codeloop.{module}"]


def load_object(target: str):
    """Import the object that `room.module:name` names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
