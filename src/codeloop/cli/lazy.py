"""Commands load what they need when they are called."""

from codeloop.kit import lazy


def load(target: str):
    """Return what `module:name` means below `codeloop.cli`."""
    return lazy.load(f"cli.{target}")
