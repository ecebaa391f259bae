"""The launcher: a small program that confines itself to a sandbox and forks commands
there (docs/decisions/0016).

It imports only the core of the standard library, so it starts in 8 ms: `pathlib`, `typing`,
`contextlib`, `collections` and their own imports would take twice as long again.
Imports for types are under TYPE_CHECKING.
"""
