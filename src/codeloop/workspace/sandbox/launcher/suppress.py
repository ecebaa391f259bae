"""A replacement of `contextlib.suppress` for the launcher, which starts without `contextlib`."""


class Suppress:
    """A context manager that ignores errors of the given classes."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        """Return whether the error that ended the block is ignored."""
        return kind is not None and issubclass(kind, self._errors)
