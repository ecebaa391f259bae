"""The built-in tools, one module and one description each."""
