"""One provider: merges its rows of catalog and configuration, and makes its endpoint (address, key,
deadlines).

Functions over plain values; the table of all providers is `providers.py`.
"""

import re
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from codeloop.model.base_url import redact_url
from codeloop.model.catalog.catalog import ProviderRow
from codeloop.model.catalog.services import find_service
from codeloop.model.catalog.vendors import BASE_URLS, SETTING_VARIABLES, LocalServer
from codeloop.model.chat import ModelInfo
from codeloop.model.credentials.environment import is_key_variable, load_chain
from codeloop.model.credentials.store import Credentials
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.limits import MODEL_NO_DEADLINE
from codeloop.schema.provider_config import OwnProviders, ProviderConfig
from codeloop.schema.wire import replace

SettingFinder = Callable[[tuple[str, ...]], tuple[str, str] | None]
"""Takes a setting's path of keys; returns where it is set, and how to change it.
None: it is not configured.
"""
EMPTY_PROVIDER_CONFIG = ProviderConfig()
_VARIABLE_PATTERN = r"\$\{(\w+)\}"


def find_no_setting(keys: tuple[str, ...]) -> None:
    """Find no setting; a `SettingFinder` for providers without configuration files."""
    del keys


class ConfigOrigins(Struct, frozen=True):
    """Where the configuration is from. `own`: the user's part of the providers; None: all of it."""

    find_setting: SettingFinder = find_no_setting
    own: OwnProviders | None = None


NO_ORIGINS = ConfigOrigins()


class OwnPart(Struct, frozen=True):
    """The part of a provider that is the user's, where a project adds to it.

    `provider`: as the user's own configuration makes it; None: they have none of that name.
    `holds`: as in `OwnProviders`.
    """

    provider: "Provider | None"
    holds: Callable[..., bool]


class Provider(Struct, frozen=True):
    """A row of the provider table. Its URLs may hold `${NAME}` of the environment;
    empty: not known.
    """

    id: str
    name: str
    npm: str
    url: str
    """Where requests go."""
    default_url: str
    """The address that a stored key without an origin is for: the catalog's,
    or else the configured one.
    """
    env: tuple[str, ...]
    model_count: int
    """Models in the catalog."""
    accepts_any_model: bool
    """Whether it takes any model name: a local server, whose models are not known beforehand."""
    config: ProviderConfig
    own: OwnPart | None = None
    """What of it is the user's; None: all of it, since no project says anything about it."""

    def __repr__(self) -> str:
        """Return id and URL only, since the configuration may hold a key."""
        return f"Provider(id={self.id!r}, url={redact_url(self.url)!r})"

    @property
    def configured_key(self) -> str | None:
        """The `apiKey` of the configuration."""
        key = self.config.options.get("apiKey")
        return key.strip() or None if isinstance(key, str) else None

    @property
    def has_key_helper(self) -> bool:
        """Whether a program of the configuration prints the key."""
        return bool(self.config.options.get("apiKeyHelper"))

    @property
    def has_model_list(self) -> bool:
        """Whether the catalog or the configuration names models of it."""
        return self.model_count > 0 or bool(self.config.models)

    @property
    def has_configured_url(self) -> bool:
        """Whether the address of the service is configured."""
        return bool(self.config.options.get("baseURL") or self.config.api)


def merge_provider(
    provider_id: str, row: ProviderRow | None, config: ProviderConfig, local: LocalServer | None
) -> Provider | None:
    """Merge a provider's catalog row, local-server row and configuration;
    None when it is unknown.
    """
    if row is None and local is None and config is EMPTY_PROVIDER_CONFIG:
        return None
    default_url = (
        BASE_URLS.get(provider_id, "") or (row.api if row else "") or (local.url if local else "")
    )
    base_url = config.options.get("baseURL") or config.api
    url = base_url.rstrip("/") if isinstance(base_url, str) else default_url
    return Provider(
        id=provider_id,
        name=config.name or (row.name if row else "") or (local.name if local else provider_id),
        npm=config.npm or (row.npm if row else "@ai-sdk/openai-compatible"),
        url=url,
        default_url=default_url or url,
        env=tuple(config.env) if config.env is not None else (row.env if row else ()),
        model_count=row.count if row else 0,
        accepts_any_model=local is not None,
        config=config,
    )


def merge_with_own(
    provider_id: str,
    row: ProviderRow | None,
    config: ProviderConfig | None,
    local: LocalServer | None,
    own_providers: OwnProviders | None,
) -> Provider | None:
    """Return `merge_provider`, with the user's part where it differs.
    `own_providers`: see ConfigOrigins.
    """
    provider = merge_provider(provider_id, row, config or EMPTY_PROVIDER_CONFIG, local)
    own_config = None if own_providers is None else own_providers.configs.get(provider_id)
    if provider is None or own_providers is None or own_config == config:
        return provider
    own = merge_provider(provider_id, row, own_config or EMPTY_PROVIDER_CONFIG, local)
    return replace(provider, own=OwnPart(own, own_providers.holds))


def resolve_url(url: str, environment: Mapping[str, str]) -> str | None:
    """Replace each `${NAME}` in a URL by the environment's value;
    None: the URL is empty or a value is not set.
    """
    if not url or any(not environment.get(name) for name in re.findall(_VARIABLE_PATTERN, url)):
        return None
    return re.sub(_VARIABLE_PATTERN, lambda match: environment[match[1]], url).rstrip("/")


def resolve_settings(provider: Provider, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment, with a provider's options in place of the
    variables that they override.

    For a cloud, the variables that its address is made of are added,
    such as the region of a profile.
    """
    options = provider.config.options
    settings = {
        name: str(options[option]).strip()
        for option, name in SETTING_VARIABLES.get(provider.id, {}).items()
        if options.get(option)
    }
    with_options = {**environment, **settings} if settings else environment
    chain = load_chain(provider.id)
    return with_options if chain is None else {**with_options, **chain.find_settings(with_options)}


def make_key_headers(npm: str, provider_id: str, key: str) -> dict[str, str]:
    """Return the headers that carry a key for a provider's models of an `npm` name."""
    service = find_service(ModelInfo(provider_id=provider_id, id="", name="", npm=npm))
    return make_protocol_key_headers(service.protocol if service else "", key)


def make_protocol_key_headers(protocol: str, key: str) -> dict[str, str]:
    """Return the headers that carry a key in a protocol,
    as its adapter sets them for a fixed key.
    """
    match protocol:
        case "anthropic-messages":
            # As ANTHROPIC_VERSION of the adapter, which is loaded with a model only.
            return {"x-api-key": key, "anthropic-version": "2023-06-01"}
        case "google-generate-content" | "google-interactions":
            return {"x-goog-api-key": key}
        case _:
            return {"authorization": f"Bearer {key}"}


def resolve_base_url(provider: Provider, environment: Mapping[str, str]) -> str | None:
    """Return a provider's own base URL; None when it is not known, or a value in it is not set."""
    return resolve_url(provider.url, resolve_settings(provider, environment))


def explain_key_unstorable(provider: Provider, environment: Mapping[str, str]) -> str:
    """Return why a key can't be stored for a provider's own address, and what to do;
    empty when it can.
    """
    settings, chain = resolve_settings(provider, environment), load_chain(provider.id)
    missing_address = ""
    if not resolve_url(provider.url, settings):
        missing_address = describe_missing_address(provider, provider.url, settings)
    if chain is None or chain.accepts_key:
        return missing_address
    location = chain.describe_credentials(settings)
    advice = (
        f"Its credentials are found ({location}), so nothing has to be stored."
        if location
        else chain.advice
    )
    return " ".join(filter(None, (f"{provider.name} takes no key.", advice, missing_address)))


def has_device_sign_in(provider: Provider, credentials: Credentials) -> bool:
    """Return whether the user signed in at a provider by a device code,
    with the client id that is configured.
    """
    if not provider.config.options.get("clientId"):
        return False
    from codeloop.model.credentials.device_code import find_stored_sign_in, make_device_sign_in

    sign_in = make_device_sign_in(provider.id, provider.config.options)
    return find_stored_sign_in(sign_in, provider.id, credentials) is not None


def describe_missing_key(provider: Provider) -> str:
    """Return that a provider has no key, and how to give it one."""
    missing = "There is no key" if load_chain(provider.id) is None else "There are no credentials"
    return f"{missing} for {provider.name}. {describe_key_setup(provider)}"


def describe_key_setup(provider: Provider) -> str:
    """Return how to give a provider its key or credentials, as a sentence."""
    if (chain := load_chain(provider.id)) is not None:
        return chain.advice
    login = f"`codeloop auth login {provider.id}`"
    names = " or ".join(name for name in provider.env if is_key_variable(name)) or " and ".join(
        provider.env
    )
    return f"Set {names}, or run {login}." if names else f"Run {login}."


def describe_missing_address(provider: Provider, url: str, environment: Mapping[str, str]) -> str:
    """Return why a provider's address (`url`, perhaps with `${NAME}` in it) is not known,
    and how to name it.
    """
    missing = [name for name in re.findall(_VARIABLE_PATTERN, url) if not environment.get(name)]
    options = {name: option for option, name in SETTING_VARIABLES.get(provider.id, {}).items()}
    if missing:
        names = [f"`{options[name]}`" for name in missing if name in options]
        alternative = (
            f", or {' and '.join(names)} in provider.{provider.id}.options of codeloop.json"
            if names
            else ""
        )
        return f"The address of {provider.name} needs {' and '.join(missing)} in the environment{alternative}."
    return f"The address of {provider.name} is not known. Set provider.{provider.id}.options.baseURL in codeloop.json."


def read_headers(provider_id: str, value: object) -> dict[str, str]:
    """Return the option `headers` of a provider.
    Raises ModelUnavailable: it is not an object of texts.
    """
    try:
        return msgspec.convert(value or {}, dict[str, str], strict=False)
    except msgspec.ValidationError as error:
        raise ModelUnavailable(
            f"provider.{provider_id}.options.headers must be an object of texts: {error}."
        ) from error


def read_concurrency(provider: Provider) -> int | None:
    """Return the configured limit of concurrent requests; None: unlimited. Raises
    `ModelUnavailable`: invalid value.
    """
    match provider.config.options.get("concurrency"):
        case None | False:
            return None
        # `True` is an int too.
        case int(limit) if limit > 0 and limit is not True:
            return limit
        case value:
            raise ModelUnavailable(
                f"provider.{provider.id}.options.concurrency is {value!r}; it must be a whole number above 0."
            )


def read_deadline(provider_id: str, name: str, value: object, default: float) -> float:
    """Return a deadline or a key's lifetime in seconds: the configuration has milliseconds,
    or false for none.
    """
    match value:
        case None | True:
            return default
        case False:
            return MODEL_NO_DEADLINE.seconds
        case int() | float() if value > 0:
            return value / 1000
        case _:
            raise ModelUnavailable(
                f"provider.{provider_id}.options.{name} is {value!r}; it must be milliseconds above 0, or false."
            )
