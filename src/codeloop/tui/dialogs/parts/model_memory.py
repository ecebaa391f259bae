"""The user's favourite and recent models, in a file that many processes share."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.kit.small_files import lock, make_private, read_start, write_atomically
from codeloop.schema.message import ModelRef
from codeloop.schema.wire import replace

_BYTES = 1_000_000
_RECENT = 8
_SECONDS = 1.0


class LikedModels(Struct, frozen=True):
    """References `provider/model`, best or latest first; `variants`: the thinking effort last chosen of each."""

    favourites: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    variants: dict[str, str] = {}


class ModelMemory:
    """Stores them in `folder`. Where that can't be written, they last only as long as the process."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "models.json"

    def read(self) -> LikedModels:
        """Read the remembered models."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(read_start(self._file, _BYTES), type=LikedModels)
        return LikedModels()

    def toggle(self, ref: str) -> None:
        """Add a model to the favourites, or remove it."""

        def update(liked_models: LikedModels) -> LikedModels:
            others = tuple(each for each in liked_models.favourites if each != ref)
            return replace(liked_models, favourites=others if ref in liked_models.favourites else (*others, ref))

        self._change(update)

    def note_use(self, model: ModelRef) -> None:
        """Record that a model was chosen."""
        ref = reference(model)

        def update(liked_models: LikedModels) -> LikedModels:
            recent = (ref, *(each for each in liked_models.recent if each != ref))[:_RECENT]
            variants = {name: variant for name, variant in liked_models.variants.items() if name != ref}
            return replace(
                liked_models, recent=recent, variants={**variants, ref: model.variant} if model.variant else variants
            )

        self._change(update)

    def _change(self, update: Callable[[LikedModels], LikedModels]) -> None:
        with suppress(OSError, TimeoutError):
            make_private(self._file.parent)
            with lock(self._file.parent, _SECONDS):
                write_atomically(self._file, msgspec.json.encode(update(self.read())))


def reference(model: ModelRef) -> str:
    """Return `provider/model`."""
    return f"{model.provider_id}/{model.model_id}"
