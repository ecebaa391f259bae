"""Context managers for the launcher, which starts without `contextlib`."""


class Suppress:
    """A context manager that ignores errors of the given classes."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        """Return whether the error that ended the block is ignored."""
        return kind is not None and issubclass(kind, self._errors)


class Step:
    """A context manager that names what was being done, such as "mounting", in each OSError."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object
    ) -> None:
        """Raise the error again with the name."""
        if isinstance(error, OSError):
            raise OSError(
                error.errno, f"{self._name}: {error.strerror or error}", error.filename
            ) from error
