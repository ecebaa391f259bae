"""The newest output of a terminal, found by its position since the start."""


class Scrollback:
    """Keeps the newest `most` characters of what was written; memory stays at two bytes a character.

    Positions count UTF-16 code units: the contract's clients add up the lengths of strings that are made of these.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = bytearray()
        self.start = 0
        """The position of the oldest character that is kept."""

    @property
    def end(self) -> int:
        """How many characters there were in all."""
        return self.start + len(self._kept) // 2

    def write(self, text: str) -> None:
        """Add output."""
        self._kept += text.encode("utf-16-le")
        extra = self.end - self.start - self._most
        if extra > 0:
            del self._kept[: 2 * extra]
            self.start += extra

    def read(self, position: int, most: int) -> tuple[str, int]:
        """Return at most `most` characters from a position on, or from the oldest kept, and the position after them.

        No character outside the basic plane is cut in two at the end; then there is one unit more.
        """
        first = min(max(position, self.start), self.end)
        last = min(first + most, self.end)
        if first < last < self.end and self._kept[2 * (last - self.start) - 1] & 0xFC == 0xD8:
            last += 1
        raw = self._kept[2 * (first - self.start) : 2 * (last - self.start)]
        return raw.decode("utf-16-le", "replace"), last
