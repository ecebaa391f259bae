"""Lazy imports for tables whose rows name their target as a string."""

# Nothing else is imported here: the package loads this first,
# before `cli/main.py` can catch a signal.
from sys import modules


def import_module(module: str) -> object:
    """Import the module that `room.module` names."""
    __import__(f"codeloop.{module}")
    return modules[f"codeloop.{module}"]


def load_object(target: str):
    """Import the object that `room.module:name` names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
