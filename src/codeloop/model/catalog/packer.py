"""Packs the data of models.dev into a catalog file, whose layout is described in `catalog.py`.

`refresh.py` packs fetched data with it, `scripts/build_catalog.py` the catalog that ships.
"""

import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from codeloop.kit.jsonc import is_list, is_object
from codeloop.model.catalog.catalog import (
    ATTACHMENT_FLAG,
    FILE_MAGIC,
    MODALITIES,
    REASONING_FLAG,
    TEMPERATURE_FLAG,
    TOOLS_FLAG,
    CatalogIndex,
    ModelRow,
    ProviderRow,
)
from codeloop.model.chat import LONG_REQUEST_TOKENS
from codeloop.schema.wire import JSON


class _SourceLimit(msgspec.Struct):
    context: float = 0
    output: float = 0
    input: float = 0


class _SourceCost(msgspec.Struct):
    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    reasoning: float | None = None
    context_over_200k: Any = None
    tiers: Any = None

    def list_price_rows(self) -> tuple[tuple[float, ...], ...]:
        """Return the rows of `ModelRow.prices`: for all requests, then for longer ones,
        the shortest first.
        """
        costs_by_size: dict[int, JSON] = {}
        for cost in self.tiers if is_list(self.tiers) else ():
            match cost:
                case {"tier": {"type": "context", "size": int(size)}} if size > 0:
                    costs_by_size[size] = cost
                case _:
                    continue
        # A model may have both forms, of which `tiers` is the newer and more precise one.
        if not costs_by_size and is_object(self.context_over_200k):
            costs_by_size = {LONG_REQUEST_TOKENS: self.context_over_200k}
        prices = _list_prices(msgspec.to_builtins(self))
        return (
            (0, *prices),
            *((size, *_list_prices(costs_by_size[size])) for size in sorted(costs_by_size)),
        )


def _list_prices(cost: JSON) -> tuple[float, ...]:
    """Return the prices of input, output, cache read, cache write,
    and of reasoning if it differs from output.

    Empty without a price of input or output.
    """
    input_price, output_price, reasoning = (
        cost.get("input"),
        cost.get("output"),
        cost.get("reasoning"),
    )
    if not isinstance(input_price, int | float) or not isinstance(output_price, int | float):
        return ()
    prices: tuple[float, ...] = (
        input_price,
        output_price,
        cost.get("cache_read") or 0,
        cost.get("cache_write") or 0,
    )
    if isinstance(reasoning, int | float) and reasoning != output_price:
        return (*prices, reasoning)
    return prices


class _SourceModalities(msgspec.Struct):
    input: list[str] = []
    output: list[str] = []


class _SourceModelProvider(msgspec.Struct):
    npm: str = ""


class SourceModel(msgspec.Struct):
    """A model in the format of models.dev, without the fields that we do not use."""

    id: str
    name: str = ""
    family: str = ""
    attachment: bool = False
    reasoning: bool = False
    tool_call: bool | JSON = False
    """Whether it calls tools: a boolean, or an object whose `supported` is one."""
    temperature: bool = False
    release_date: str = ""
    status: str = ""
    modalities: _SourceModalities = msgspec.field(default_factory=_SourceModalities)
    cost: _SourceCost | None = None
    limit: _SourceLimit = msgspec.field(default_factory=_SourceLimit)
    interleaved: bool | JSON = False
    provider: _SourceModelProvider = msgspec.field(default_factory=_SourceModelProvider)

    @property
    def calls_tools(self) -> bool:
        """Whether the model calls tools, by either form of `tool_call`."""
        return bool(
            self.tool_call.get("supported") if isinstance(self.tool_call, dict) else self.tool_call
        )


class SourceProvider(msgspec.Struct):
    """A provider in the format of models.dev."""

    id: str
    name: str
    npm: str = "@ai-sdk/openai-compatible"
    api: str = ""
    env: list[str] = []
    models: dict[str, SourceModel] = {}


def parse_source(data: bytes) -> dict[str, SourceProvider]:
    """Decode a models.dev document. Raises `msgspec.MsgspecError` when it is of another shape."""
    return msgspec.json.decode(data, type=dict[str, SourceProvider])


def pack_catalog(providers: dict[str, SourceProvider], built: str) -> bytes:
    """Return a catalog file: all providers, and their models that can call tools.
    `built` is an ISO date.
    """
    *_, data = iterate_packing(providers, built)
    return data or b""


def iterate_packing(providers: dict[str, SourceProvider], built: str) -> Iterator[bytes | None]:
    """Pack a catalog file step by step: yield None after each provider (a few milliseconds),
    at the end the file.

    An event loop can run other tasks between the steps.
    """
    rows: list[ProviderRow] = []
    # By provider: its models, compressed on their own, since a run needs those of one provider.
    blobs: list[bytes] = []
    offset = 0
    for provider in providers.values():
        # Ids are shown in terminals, where a control character could do harm;
        # they can't be changed as names can.
        if not provider.id.isprintable():
            continue
        models = [
            _make_model_row(model, provider.npm)
            for model in provider.models.values()
            if model.calls_tools and model.id.isprintable()
        ]
        blob = zlib.compress(_encode_json(models), 9)
        rows.append(
            ProviderRow(
                id=provider.id,
                name=_strip_controls(provider.name),
                npm=provider.npm,
                api=provider.api.rstrip("/"),
                env=tuple(provider.env),
                count=len(models),
                offset=offset,
                length=len(blob),
            )
        )
        blobs.append(blob)
        offset += len(blob)
        yield None
    index = zlib.compress(_encode_json(CatalogIndex(built=built, providers=tuple(rows))), 9)
    yield b"".join([FILE_MAGIC, len(index).to_bytes(4, "big"), index, *blobs])


def _make_model_row(model: SourceModel, provider_npm: str) -> ModelRow:
    flags = (
        (TOOLS_FLAG if model.calls_tools else 0)
        | (REASONING_FLAG if model.reasoning else 0)
        | (TEMPERATURE_FLAG if model.temperature else 0)
        | (ATTACHMENT_FLAG if model.attachment else 0)
    )
    field = model.interleaved.get("field", "") if isinstance(model.interleaved, dict) else ""
    cost, limit = model.cost, model.limit
    return ModelRow(
        id=model.id,
        name=_strip_controls(model.name) or model.id,
        family=model.family,
        npm="" if model.provider.npm == provider_npm else model.provider.npm,
        limits=(int(limit.context), int(limit.output), int(limit.input)),
        prices=cost.list_price_rows() if cost else (),
        flags=flags,
        modality_bits=sum(
            1 << bit for bit, name in enumerate(MODALITIES) if name in model.modalities.input
        )
        or 1,
        reasoning_field=field if isinstance(field, str) else "",
        status="" if model.status == "active" else model.status,
        release_date=model.release_date,
    )


def _strip_controls(name: str) -> str:
    """Remove control and bidirectional characters, since names are shown in terminals."""
    return "".join(char for char in name if char.isprintable())


def _encode_json(value: object) -> bytes:
    """Encode as JSON, with 3.0 as 3: shorter, and decoded as the same float."""
    return msgspec.json.encode(_shorten_numbers(msgspec.to_builtins(value)))


def _shorten_numbers(value: object) -> object:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list() | tuple():
            items: list[object] = [*value]
            return [_shorten_numbers(item) for item in items]
        case _:
            return value
