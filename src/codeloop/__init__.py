"""codeloop: an open coding agent; terminal program, server and library in one package."""

__version__ = "0.1.0"
