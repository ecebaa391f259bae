"""The one place where modules of ours are imported late: a command loads what it needs, when it is called."""

from importlib import import_module  # nothing else: a signal may come before this is loaded


def load(target: str):
    """Return what `module:name` means below `codeloop.cli`."""
    module, _, name = target.partition(":")
    return getattr(import_module(f"codeloop.cli.{module}"), name)
