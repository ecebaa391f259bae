"""A loop that always does the same work: the unit of the ratios,
which machines of different speed have in common.

It does what codeloop does most: calls, dictionaries, texts, small objects.
"""

_ROUNDS = 60_000
"""About a quarter of a second on a machine of 2020."""


class _Row:
    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size

    def describe(self) -> str:
        return f"{self.name}: {self.size}"


def run_loop(rounds: int = _ROUNDS) -> int:
    """Do the work, and return a number that depends on all of it."""
    sizes: dict[str, int] = {}
    total = 0
    for number in range(rounds):
        row = _Row(f"row {number % 997}", number)
        text = row.describe()
        words = text.replace(":", " ").split()
        sizes[row.name] = sizes.get(row.name, 0) + len(words)
        total += sum(len(word) for word in words if not word.startswith("x"))
    return total + len(sizes)


if __name__ == "__main__":
    run_loop()
