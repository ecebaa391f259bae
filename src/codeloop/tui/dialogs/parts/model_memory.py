"""The user's favourite and recent models, in a file that many processes share."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.kit.small_files import lock, make_private, read_start, write_atomically
from codeloop.schema.message import ModelRef
from codeloop.schema.wire import replace

_MOST_BYTES = 1_000_000
_RECENT = 8
"""How many recent models are remembered."""
_LOCK_SECONDS = 1.0


class RememberedModels(Struct, frozen=True):
    """Models as `provider/model`: favourites as they were added, recent ones the latest first.

    `variants`: the thinking effort last chosen for a model.
    """

    favourites: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    variants: dict[str, str] = {}


class ModelMemory:
    """Stores them in `folder`. Where that can't be written, they last only as long as the process."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "models.json"

    def read(self) -> RememberedModels:
        """Read the remembered models."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(read_start(self._file, _MOST_BYTES), type=RememberedModels)
        return RememberedModels()

    def toggle(self, ref: str) -> None:
        """Add a model to the favourites, or remove it."""

        def update(models: RememberedModels) -> RememberedModels:
            favourites = tuple(each for each in models.favourites if each != ref)
            return replace(models, favourites=favourites if ref in models.favourites else (*favourites, ref))

        self._change(update)

    def note_use(self, model: ModelRef) -> None:
        """Record that a model was chosen."""
        ref = format_reference(model)

        def update(models: RememberedModels) -> RememberedModels:
            recent = (ref, *(each for each in models.recent if each != ref))[:_RECENT]
            variants = {name: variant for name, variant in models.variants.items() if name != ref}
            return replace(
                models, recent=recent, variants={**variants, ref: model.variant} if model.variant else variants
            )

        self._change(update)

    def _change(self, update: Callable[[RememberedModels], RememberedModels]) -> None:
        with suppress(OSError, TimeoutError):
            make_private(self._file.parent)
            with lock(self._file.parent, _LOCK_SECONDS):
                write_atomically(self._file, msgspec.json.encode(update(self.read())))


def format_reference(model: ModelRef) -> str:
    """Return `provider/model`."""
    return f"{model.provider_id}/{model.model_id}"
