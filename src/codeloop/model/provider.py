"""One provider: where its service is, which key goes there, how long to wait. Functions over plain values."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from codeloop.model.catalog.catalog import ProviderRow
from codeloop.model.catalog.vendors import BASE_URLS, LocalServer
from codeloop.model.credentials.environment import environment_key
from codeloop.model.credentials.store import Credentials
from codeloop.model.errors import ModelUnavailable, NoKey
from codeloop.model.origin import bare_url, origin
from codeloop.model.wire.endpoint import KEY_HEADERS, Endpoint
from codeloop.net.origin import is_loopback
from codeloop.schema.config import ProviderConfig
from codeloop.schema.limits import MODEL_FIRST_BYTE, MODEL_IDLE, MODEL_NO_DEADLINE

NO_PROVIDER_CONFIG = ProviderConfig()
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class Provider(Struct, frozen=True):
    """A row of the provider table. `url` and `home` may hold `${NAME}` of the environment; empty: not known."""

    id: str
    name: str
    npm: str
    url: str
    """Where requests go."""
    home: str
    """Where a stored key without an origin belongs: the catalog's address, or that of a provider only configured."""
    env: tuple[str, ...]
    count: int
    """Models in the catalog."""
    open_ended: bool
    """A local server: its models are not known beforehand."""
    config: ProviderConfig

    def __repr__(self) -> str:
        """Return the text that may be shown: its configuration may hold a key."""
        return f"Provider(id={self.id!r}, url={bare_url(self.url)!r})"

    @property
    def configured_key(self) -> str | None:
        """The `apiKey` of the configuration."""
        key = self.config.options.get("apiKey")
        return key.strip() or None if isinstance(key, str) else None

    @property
    def lists_models(self) -> bool:
        """Whether the catalog or the configuration names models of it."""
        return self.count > 0 or bool(self.config.models)

    @property
    def configured_url(self) -> bool:
        """Whether the configuration says where the service is."""
        return bool(self.config.options.get("baseURL") or self.config.api)


def provider_of(
    provider_id: str, row: ProviderRow | None, config: ProviderConfig, local: LocalServer | None
) -> Provider | None:
    """Lay a provider's configuration over its catalog row and its row of local servers; None when nobody knows it."""
    if row is None and local is None and config is NO_PROVIDER_CONFIG:
        return None
    known = (row.api if row else "") or BASE_URLS.get(provider_id, "") or (local.url if local else "")
    said = config.options.get("baseURL") or config.api
    url = said.rstrip("/") if isinstance(said, str) else known
    return Provider(
        id=provider_id,
        name=config.name or (row.name if row else "") or (local.name if local else provider_id),
        npm=config.npm or (row.npm if row else "@ai-sdk/openai-compatible"),
        url=url,
        home=known or url,
        env=tuple(config.env) if config.env is not None else (row.env if row else ()),
        count=row.count if row else 0,
        open_ended=local is not None,
        config=config,
    )


def resolved_url(url: str, environment: Mapping[str, str]) -> str | None:
    """Put the environment's values into `${NAME}`; None when the URL is not known or a value is not set."""
    if not url or any(not environment.get(name) for name in _VARIABLE.findall(url)):
        return None
    return _VARIABLE.sub(lambda found: environment[found[1]], url).rstrip("/")


def endpoint_of(provider: Provider, credentials: Credentials, environment: Mapping[str, str]) -> Endpoint:
    """Return the provider's service with the key that may go there.

    Raises `ModelUnavailable`: the address is not known or no URL, a key is missing (`NoKey`), or the stored one is
    for another origin (`WrongOrigin`).
    """
    url = resolved_url(provider.url, environment)
    if url is None:
        raise ModelUnavailable(_no_address(provider, environment))
    origin(url)
    headers = _strings(provider.id, provider.config.options.get("headers"))
    key = _key(provider, url, credentials, environment)
    needed = provider.env and not provider.configured_url and not is_loopback(urlsplit(url).hostname or "")
    if key is None and needed and not KEY_HEADERS & {name.lower() for name in headers}:
        names = " or ".join(provider.env)
        raise NoKey(f"There is no key for {provider.name}. Set {names}, or run `codeloop auth login {provider.id}`.")
    options = provider.config.options
    return Endpoint(
        base_url=url,
        key=key,
        headers=headers,
        first_byte=_seconds(provider.id, "timeout", options.get("timeout"), MODEL_FIRST_BYTE.seconds),
        idle=_seconds(provider.id, "chunkTimeout", options.get("chunkTimeout"), MODEL_IDLE.seconds),
    )


def _key(provider: Provider, url: str, credentials: Credentials, environment: Mapping[str, str]) -> str | None:
    """Return the configuration's key, else the environment's (like the URL the person's own), else a stored one."""
    if provider.configured_key:
        return provider.configured_key
    found = environment_key(provider.env, environment)
    if found is not None:
        return found[1]
    return credentials.key(provider.id, url, resolved_url(provider.home, environment) or "")


def _no_address(provider: Provider, environment: Mapping[str, str]) -> str:
    missing = [name for name in _VARIABLE.findall(provider.url) if not environment.get(name)]
    if missing:
        return f"The address of {provider.name} needs {', '.join(missing)} in the environment. Set it and try again."
    return f"The address of {provider.name} is not known. Set provider.{provider.id}.options.baseURL in codeloop.json."


def _strings(provider_id: str, value: object) -> dict[str, str]:
    try:
        return msgspec.convert(value or {}, dict[str, str], strict=False)
    except msgspec.ValidationError as error:
        raise ModelUnavailable(
            f"provider.{provider_id}.options.headers must be an object of texts: {error}."
        ) from error


def _seconds(provider_id: str, name: str, value: object, default: float) -> float:
    """Read a deadline of the configuration: milliseconds, or false for none."""
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
