"""`provider` in the configuration: providers and their models; and what the user's own
configuration says about providers and other services, where a project's adds to it.
"""

from msgspec import Struct

from codeloop.schema.wire import JSON, Wire


class ModelLimitConfig(Wire):
    """How many tokens a model's context window, its answer (`output`) and a
    request (`input`) may have.
    """

    context: int | None = None
    output: int | None = None
    input: int | None = None


class PricesConfig(Wire, rename=None):
    """Dollars per million tokens."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None
    """The price of reasoning tokens, where it differs from that of other output."""


class TierConfig(Wire, rename=None):
    """The requests that a tier of prices is for: with the type `context`,
    those of more than `size` tokens.
    """

    size: int
    type: str = "context"


class CostTierConfig(PricesConfig, rename=None, kw_only=True):
    """Dollars per million tokens of the requests that `tier` is for."""

    tier: TierConfig


class ModelCostConfig(PricesConfig, rename=None):
    """Dollars per million tokens; `context_over_200k`: of requests with
    more than 200,000 tokens.
    """

    context_over_200k: PricesConfig | None = None
    tiers: list[CostTierConfig] | None = None


class ModalitiesConfig(Wire):
    """The kinds of content that a model reads and writes: `text`, `image`, `pdf`, `audio`,
    `video`.
    """

    input: list[str] | None = None
    output: list[str] | None = None


class ModelServiceConfig(Wire, rename=None):
    """`provider.<id>.models.<id>.provider`: the SDK package of this model,
    where it is not the provider's.
    """

    npm: str | None = None


class ModelConfig(Wire, rename=None):
    """`provider.<id>.models.<id>`: overrides the catalog's entry of a model, or adds a model."""

    id: str | None = None
    name: str | None = None
    tool_call: bool | None = None
    reasoning: bool | None = None
    temperature: bool | None = None
    attachment: bool | None = None
    modalities: ModalitiesConfig | None = None
    interleaved: bool | str | JSON | None = None
    limit: ModelLimitConfig | None = None
    provider: ModelServiceConfig | None = None
    cost: ModelCostConfig | None = None
    options: JSON = {}
    headers: dict[str, str] = {}
    variants: dict[str, JSON] = {}
    small: bool | None = None
    disabled: bool = False


class ProviderConfig(Wire):
    """`provider.<id>`.

    `options` knows baseURL, apiKey, headers, timeout (ms, of the first byte;
    false: none) and chunkTimeout (ms).
    """

    name: str | None = None
    npm: str | None = None
    api: str | None = None
    env: list[str] | None = None
    options: JSON = {}
    models: dict[str, ModelConfig] = {}
    whitelist: list[str] | None = None
    blacklist: list[str] | None = None


class OwnProviders(Struct, frozen=True):
    """The providers as the user's own layers configure them, without those of a project.

    `keys`: of the settings in effect, those that the user set, and those of the project that hold a
    variable or a file of the user, each by its path below `provider`: `("openai", "options",
    "apiKey")`.
    """

    configs: dict[str, ProviderConfig]
    keys: frozenset[tuple[str | int, ...]]

    def holds(self, *keys: str) -> bool:
        """Return whether a setting in effect, or a part of it, is the user's."""
        return any(each[: len(keys)] == keys for each in self.keys)


class OwnEntry(Struct, frozen=True):
    """The user's part of an entry whose address a project names and in which a secret
    of the user is in effect.

    The entry is `search`, or one of `mcp`. `values`: as the user's own layers have it,
    empty if they have none.
    `secret`: the setting with the secret (`headers`). `is_borrowed`: the project has it from a
    variable or a file of the user.
    """

    values: JSON
    secret: str
    is_borrowed: bool = False
