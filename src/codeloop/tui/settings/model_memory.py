"""`ModelMemory`: the user's favourite and recent models,
in a file that all processes of the user share.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.kit.small_files import create_private_folder, lock, read_start, write_atomically
from codeloop.schema.message import ModelRef, format_model_ref
from codeloop.schema.wire import DECODE_ERRORS, replace

# Bounds what is read of a damaged file.
_MAX_FILE_BYTES = 1_000_000
_MAX_RECENT = 8
"""Recent models that are remembered."""
_LOCK_TIMEOUT_SECONDS = 1.0
"""How long a change waits for another process's change of the file; after that it is given up."""


class RememberedModels(Struct, frozen=True):
    """Models as `provider/model`: favourites as they were added, recent ones the latest first.

    `variants`: the thinking effort last chosen for a model.
    """

    favourites: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    variants: dict[str, str] = {}


class ModelMemory:
    """Stores the remembered models in `folder`. Where it can't be written, nothing is remembered,
    without an error.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "models.json"

    def read(self) -> RememberedModels:
        """Return the remembered models; none if the file is missing or damaged."""
        with suppress(OSError, *DECODE_ERRORS):
            return msgspec.json.decode(
                read_start(self._file, _MAX_FILE_BYTES), type=RememberedModels
            )
        return RememberedModels()

    def toggle_favourite(self, ref: str) -> None:
        """Add a model to the favourites, or remove it."""

        def update(models: RememberedModels) -> RememberedModels:
            favourites = tuple(each for each in models.favourites if each != ref)
            return replace(
                models, favourites=favourites if ref in models.favourites else (*favourites, ref)
            )

        self._change(update)

    def add_recent(self, model: ModelRef) -> None:
        """Record that a model was chosen: it becomes the latest of the recent ones."""
        ref = format_model_ref(model)

        def update(models: RememberedModels) -> RememberedModels:
            recent = (ref, *(each for each in models.recent if each != ref))[:_MAX_RECENT]
            variants = {name: variant for name, variant in models.variants.items() if name != ref}
            return replace(
                models,
                recent=recent,
                variants={**variants, ref: model.variant} if model.variant else variants,
            )

        self._change(update)

    def _change(self, update: Callable[[RememberedModels], RememberedModels]) -> None:
        # What is remembered is a convenience: a full disk or another process must not end the UI.
        with suppress(OSError, TimeoutError):
            create_private_folder(self._file.parent)
            with lock(self._file.parent, _LOCK_TIMEOUT_SECONDS):
                write_atomically(self._file, msgspec.json.encode(update(self.read())))
