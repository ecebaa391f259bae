"""The program that forks commands. It runs inside sandboxes.

Only the core of the standard library, so it starts in 8 ms: `pathlib`, `typing`, `contextlib`, `collections` and what
they import would take twice as long again. What is only for types is imported for them alone.
"""
