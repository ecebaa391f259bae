"""The catalog of providers and models, with limits and prices.

One small file holds it: a packed index of all providers, then each provider's models, packed on
their own. Starting up reads the index, and the models of the one provider that is used;
nothing else is decoded.

    b"CLC2" | length of the index (4 bytes, big-endian) | index | models of provider 0
    | models of provider 1 | ...

Index and models are JSON, compressed with zlib. `codeloop.model.catalog.packer` writes the file.
"""

import zlib
from collections.abc import Iterable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import BinaryIO

import msgspec

from codeloop.model.chat import ModelInfo, Prices, PriceTier, TokenLimits
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.installation import check_package_file
from codeloop.schema.wire import DECODE_ERRORS, replace

FILE_MAGIC = b"CLC2"
FETCHED_FILE_NAME = "models.bin"
"""The file name of a catalog that was fetched from models.dev, in the cache folder."""
BUNDLED_FILE = Path(__file__).parent / "data" / "catalog.bin"
# The order is part of the file's format.
MODALITIES = ("text", "image", "pdf", "audio", "video")
"""Bit n of `ModelRow.modality_bits` stands for the n-th of these."""
TOOLS_FLAG, REASONING_FLAG, TEMPERATURE_FLAG, ATTACHMENT_FLAG = 1, 2, 4, 8
"""The bits of `ModelRow.flags`."""


class ProviderRow(msgspec.Struct, frozen=True, array_like=True):
    """A provider in the index. `offset` and `length` (bytes) locate its `count` models."""

    id: str
    name: str
    npm: str
    api: str
    """The base URL, perhaps with `${NAME}` of the environment in it."""
    env: tuple[str, ...]
    count: int
    offset: int
    length: int


class CatalogIndex(msgspec.Struct, frozen=True, array_like=True):
    """All providers; `built` is an ISO date."""

    built: str
    providers: tuple[ProviderRow, ...]


class ModelRow(msgspec.Struct, frozen=True, array_like=True):
    """A model as stored: limits in tokens (0: unknown), prices in dollars per million tokens."""

    id: str
    name: str
    family: str
    npm: str
    """The package that names the protocol; empty: the provider's."""
    limits: tuple[int, int, int]
    """Of the context, of an answer, of a request."""
    prices: tuple[tuple[float, ...], ...]
    """Rows: tokens above which it applies, then input, output, cache read, cache write,
    and reasoning if it differs.

    The first row is for all requests, others for longer ones.
    A row without prices, or no row: unknown.
    """
    flags: int
    """A sum of `TOOLS_FLAG`, `REASONING_FLAG`, `TEMPERATURE_FLAG` and `ATTACHMENT_FLAG`."""
    modality_bits: int
    """The modalities of its input: a bit for each of `MODALITIES`."""
    reasoning_field: str
    status: str
    release_date: str

    def to_info(self, provider: ProviderRow) -> ModelInfo:
        """Convert the row to the metadata that the rest of the program uses."""
        context, output, input_limit = self.limits
        return ModelInfo(
            provider_id=provider.id,
            id=self.id,
            name=self.name,
            npm=self.npm or provider.npm,
            limits=TokenLimits(context=context, output=output, input=input_limit),
            prices=_read_prices(self.prices),
            tool_call=bool(self.flags & TOOLS_FLAG),
            reasoning=bool(self.flags & REASONING_FLAG),
            temperature=bool(self.flags & TEMPERATURE_FLAG),
            attachment=bool(self.flags & ATTACHMENT_FLAG),
            input=_read_modalities(self.modality_bits),
            reasoning_field=self.reasoning_field,
            status=self.status or "active",
            release_date=self.release_date,
            family=self.family,
        )


def _read_prices(rows: tuple[tuple[float, ...], ...]) -> Prices:
    """Decode `ModelRow.prices`. Cached tokens without a price of their own cost
    as much as other input.
    """
    if not rows:
        return Prices()
    first, *longer = [
        PriceTier(above_tokens=int(row[0]), prices=_read_price_row(row[1:])) for row in rows
    ]
    return replace(first.prices, tiers=tuple(longer)) if longer else first.prices


def _read_price_row(row: tuple[float, ...]) -> Prices:
    match row:
        case (input_price, output_price, cache_read, cache_write, *rest):
            return Prices(
                input=input_price,
                output=output_price,
                cache_read=cache_read or input_price,
                cache_write=cache_write or input_price,
                reasoning=rest[0] if rest else None,
                is_known=True,
            )
        case _:
            return Prices()


@lru_cache(maxsize=1 << len(MODALITIES))
def _read_modalities(bits: int) -> frozenset[str]:
    return frozenset(name for bit, name in enumerate(MODALITIES) if bits >> bit & 1)


class ProviderInfo(msgspec.Struct, frozen=True):
    """A provider with its models, by id, in the catalog's order."""

    row: ProviderRow
    models: dict[str, ModelInfo]


class _CatalogFile:
    """A catalog file: its path, its index, and where in it the models start (bytes)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            # The magic and the length of the index, four bytes each.
            head = file.read(8)
            if len(head) < 8 or not head.startswith(FILE_MAGIC):
                raise ValueError(f"{path} is not a catalog")
            size = int.from_bytes(head[4:8], "big")
            self.index = msgspec.json.decode(zlib.decompress(file.read(size)), type=CatalogIndex)
        self.start = 8 + size

    def _open(self) -> BinaryIO:
        return (check_package_file(self.path) if self.path == BUNDLED_FILE else self.path).open(
            "rb"
        )

    def read_models(self, row: ProviderRow) -> dict[str, ModelInfo]:
        with self._open() as file:
            file.seek(self.start + row.offset)
            data = file.read(row.length)
        rows = msgspec.json.decode(zlib.decompress(data), type=list[ModelRow])
        return {model.id: model.to_info(row) for model in rows}


class Catalog:
    """Reads catalog files; nothing is read before it is asked for.

    `cache` is the folder of a fetched catalog, `bundled` the file that comes with the package. The
    newer of the two is used; one that is missing or broken is skipped.
    """

    def __init__(self, cache: Path | None = None, *, bundled: Path = BUNDLED_FILE) -> None:
        self.cache = cache
        """The folder of what can be fetched or found out again; None: nothing is kept."""
        self._paths = (bundled,) if cache is None else (bundled, cache / FETCHED_FILE_NAME)
        self._providers: dict[str, ProviderInfo] = {}

    @cached_property
    def _file(self) -> _CatalogFile:
        files = list(_open_readable_files(self._paths))
        if not files:
            raise ModelUnavailable(
                f"No model catalog can be read at {', '.join(map(str, self._paths))}. "
                "Install codeloop again, from its repository."
            )
        # A new version of the package may have a newer catalog than the cache.
        return max(files, key=lambda file: file.index.built)

    @cached_property
    def _rows_by_id(self) -> dict[str, ProviderRow]:
        return {row.id: row for row in self._file.index.providers}

    @property
    def built(self) -> str:
        """The ISO date of the data."""
        return self._file.index.built

    @property
    def path(self) -> Path:
        """The catalog file in use."""
        return self._file.path

    @cached_property
    def environment_names(self) -> frozenset[str]:
        """Every environment variable that some provider's key or setting is read from."""
        return frozenset(name for row in self._file.index.providers for name in row.env)

    def list_providers(self) -> tuple[ProviderRow, ...]:
        """Return all providers, without their models."""
        return self._file.index.providers

    def find_row(self, provider_id: str) -> ProviderRow | None:
        """Return one provider without its models, or None when the catalog has none of that id."""
        return self._rows_by_id.get(provider_id)

    def find_provider(self, provider_id: str) -> ProviderInfo | None:
        """Return one provider with its models, or None. Decodes that provider only, once.

        Raises `ModelUnavailable` when the file is damaged.
        """
        row = self._rows_by_id.get(provider_id)
        if row is None:
            return None
        if provider_id not in self._providers:
            try:
                models = self._file.read_models(row)
            except (OSError, zlib.error, *DECODE_ERRORS) as error:
                raise ModelUnavailable(
                    f"The model catalog {self._file.path} is damaged ({error}). Delete it, "
                    "or install codeloop again, from its repository."
                ) from error
            self._providers[provider_id] = ProviderInfo(row=row, models=models)
        return self._providers[provider_id]

    def find_model(self, provider_id: str, model_id: str) -> ModelInfo | None:
        """Return one model, or None."""
        provider = self.find_provider(provider_id)
        return provider.models.get(model_id) if provider else None


def _open_readable_files(paths: Iterable[Path]) -> Iterable[_CatalogFile]:
    for path in paths:
        try:
            yield _CatalogFile(path)
        except (OSError, ValueError, zlib.error, msgspec.MsgspecError):
            # The file that ships is as good a catalog, so a broken download is not an error.
            continue
