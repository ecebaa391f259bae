"""Providers and models, as clients list them."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.wire import JSON, Wire

ProviderSource = Literal["env", "config", "custom", "api"]
"""Where a provider's key is from: a variable, the configuration, nowhere (or it needs none),
a stored one.
"""


ModelStatus = Literal["alpha", "beta", "deprecated", "active"]


class ModelApi(Wire):
    """The address and the kind of the service that runs a model."""

    id: str
    url: str
    npm: str


class Modalities(Wire):
    """The kinds of content that a model reads or writes."""

    text: bool
    audio: bool
    image: bool
    video: bool
    pdf: bool


class ModelCapabilities(Wire):
    """What a model can do."""

    temperature: bool
    reasoning: bool
    attachment: bool
    toolcall: bool
    input: Modalities
    output: Modalities
    interleaved: Any


class CachePrice(Wire):
    """Dollars per million tokens."""

    read: float
    write: float


class ModelCost(Wire):
    """Dollars per million tokens."""

    input: float
    output: float
    cache: CachePrice


class ModelLimit(Wire):
    """Tokens; 0: not known."""

    context: int
    output: int
    input: int | None = None


class Model(Wire):
    """A model of a provider."""

    id: str
    provider_id: str
    api: ModelApi
    name: str
    capabilities: ModelCapabilities
    cost: ModelCost
    limit: ModelLimit
    status: ModelStatus
    options: JSON
    headers: dict[str, str]
    # The contract spells it with an underscore.
    release_date: str = msgspec.field(name="release_date")
    family: str | None = None
    variants: dict[str, JSON] | None = None


class ProviderDetails(Wire):
    """A provider with its models by id. Keys are never shown, in `options` neither."""

    id: str
    name: str
    source: ProviderSource
    env: list[str]
    options: JSON
    models: dict[str, Model]
    preferred_key: str = ""
    """Where there is a key that counts before a stored one, in words; empty: nowhere."""


class UsableProviders(Wire):
    """The providers that can be used now; `default`: the model to begin with, by provider."""

    providers: list[ProviderDetails]
    default: dict[str, str]


class KnownProviders(Wire):
    """Every provider there is; `connected`: the ids of those that can be used now."""

    all: list[ProviderDetails]
    default: dict[str, str]
    connected: list[str]
    keyring: bool = False
    """Whether keys can be kept in the system's keyring."""


API_KEY_LABEL = "API key"
"""The label of the method that asks for a key and nothing else."""


class ProviderAuthMethod(Wire):
    """A way to get a credential for a provider."""

    type: Literal["oauth", "api"]
    label: str
    prompts: list[JSON] | None = None
    """What is to be asked for first: `type` (`text`, `select`), `key`, `message`, perhaps
    `placeholder`, `options`.

    Beyond OpenCode's API, a prompt may be `hidden`: what is typed is a key;
    and `optional`: the answer may be empty.
    """


def is_prompt_needed(prompt: JSON, answers: Mapping[str, str]) -> bool:
    """Return whether this prompt of a ProviderAuthMethod must be asked,
    after the answers so far.
    """
    # `{"key": "region", "op": "eq", "value": "eu"}`: only after this answer to another prompt;
    # `neq`: after others.
    condition: JSON = prompt.get("when") or {}
    if not condition:
        return True
    is_equal = answers.get(str(condition.get("key"))) == condition.get("value")
    return is_equal if condition.get("op") == "eq" else not is_equal


class ApiAuth(Wire, tag_field="type", tag="api"):
    """A key for a provider. `keyring`: keep it in the system's keyring, or in the file;
    None: where the old one is.
    """

    key: str
    metadata: JSON | None = None
    keyring: bool | None = None


class OAuth(Wire, tag_field="type", tag="oauth"):
    """What a sign-in with a plugin gave; `expires`: milliseconds since 1970."""

    refresh: str = ""
    access: str = ""
    expires: int = 0
    account_id: str | None = None
    enterprise_url: str | None = None


class WellKnownAuth(Wire, tag_field="type", tag="wellknown"):
    """A token of a service that describes its own addresses; not offered here."""


class SetAuth(Wire):
    """Stores a credential of a provider; `auth` is the whole body."""

    provider_id: str
    auth: ApiAuth | OAuth | WellKnownAuth


class StartSignIn(Wire):
    """Starts a sign-in; `method` counts the provider's methods from 0,
    `inputs` are the answers to its prompts.
    """

    provider_id: str
    method: int
    inputs: dict[str, str] | None = None


class StartedSignIn(Wire):
    """Where to sign in. `auto`: the plugin notices by itself;
    `code`: it needs the code that the page shows.
    """

    url: str
    method: Literal["auto", "code"]
    instructions: str


class FinishSignIn(Wire):
    """Waits until a started sign-in ends, or ends it with its code."""

    provider_id: str
    method: int
    code: str | None = None


class ProviderId(Wire):
    """Names a provider."""

    provider_id: str


class ServerAddress(Wire):
    """Asks a user's own model server for its models; `key`: its API key, empty for none."""

    # By the rule for names it would be `baseUrl`.
    base_url: str = msgspec.field(name="baseURL")
    key: str = ""


class ServerModels(Wire):
    """The base URL that answers and the ids of its models, perhaps none;
    `needs_key`: it wants another key.
    """

    base_url: str = msgspec.field(name="baseURL")
    models: list[str]
    needs_key: bool = False


class AddProvider(Wire):
    """Puts a user's own model server into their configuration; `key` is stored for its address."""

    provider_id: str
    name: str
    base_url: str = msgspec.field(name="baseURL")
    models: list[str]
    key: str = ""


CONFIG_PROVIDERS = Operation(
    "config.providers",
    "GET",
    "/config/providers",
    NoArguments,
    UsableProviders,
    "project.providers:list_usable_providers",
)
PROVIDER_LIST = Operation(
    "provider.list",
    "GET",
    "/provider",
    NoArguments,
    KnownProviders,
    "project.providers:list_providers",
)
PROVIDER_MODELS = Operation(
    "provider.models",
    "POST",
    "/provider/models",
    ServerAddress,
    ServerModels,
    "project.add_provider:list_models",
)
PROVIDER_ADD = Operation(
    "provider.add", "POST", "/provider", AddProvider, bool, "project.add_provider:add_provider"
)
PROVIDER_AUTH = Operation(
    "provider.auth",
    "GET",
    "/provider/auth",
    NoArguments,
    dict[str, list[ProviderAuthMethod]],
    "project.providers:list_methods_by_provider",
)
PROVIDER_AUTHORIZE = Operation(
    "provider.oauth.authorize",
    "POST",
    "/provider/{providerID}/oauth/authorize",
    StartSignIn,
    StartedSignIn,
    "project.providers:start_sign_in",
)
PROVIDER_CALLBACK = Operation(
    "provider.oauth.callback",
    "POST",
    "/provider/{providerID}/oauth/callback",
    FinishSignIn,
    bool,
    "project.providers:finish_sign_in",
)
AUTH_SET = Operation(
    "auth.set",
    "PUT",
    "/auth/{providerID}",
    SetAuth,
    bool,
    "project.providers:set_auth",
    body="auth",
)
AUTH_REMOVE = Operation(
    "auth.remove", "DELETE", "/auth/{providerID}", ProviderId, bool, "project.providers:remove_auth"
)
