"""`contextlib.suppress` for a program that starts without `contextlib`."""


class Suppress:
    """A block that ends silently with one of these errors."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        """Say whether what ended the block is ignored."""
        return kind is not None and issubclass(kind, self._errors)
