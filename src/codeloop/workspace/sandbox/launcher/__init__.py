"""The program that forks commands. It runs inside sandboxes.

It imports only the core of the standard library, so it starts in 8 ms: `pathlib`, `typing`, `contextlib`, `collections`
and what they import would take twice as long again. Imports for types are under TYPE_CHECKING.
"""
