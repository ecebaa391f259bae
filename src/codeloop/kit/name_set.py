"""Sets of file names in which `*` stands for any run of characters: looked up
without a regular expression.
"""

from collections.abc import Iterable

from codeloop.kit.wildcard import matches


class NameSet:
    """The names that match one of some wildcards, in any case; only `*` is special in them.

    >>> ".ENV.local" in NameSet([".env", ".env.*", "*.pem"])
    True
    """

    def __init__(self, wildcards: Iterable[str]) -> None:
        exact: set[str] = set()
        starts: list[str] = []
        ends: list[str] = []
        others: list[tuple[str, str, str]] = []
        for wildcard in map(str.casefold, wildcards):
            start, *rest = wildcard.split("*")
            if not rest:
                exact.add(wildcard)
            elif rest == [""]:
                starts.append(start)
            elif not start and len(rest) == 1:
                ends.append(rest[0])
            else:
                others.append((start, rest[-1], wildcard))
        self._exact, self._starts, self._ends, self._others = (
            frozenset(exact),
            tuple(starts),
            tuple(ends),
            others,
        )

    def __contains__(self, name: str) -> bool:
        """Return whether a name matches one of the wildcards."""
        name = name.casefold()
        return (
            name in self._exact
            or name.startswith(self._starts)
            or name.endswith(self._ends)
            or any(
                name.startswith(start) and name.endswith(end) and matches(name, wildcard)
                for start, end, wildcard in self._others
            )
        )
