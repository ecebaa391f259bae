"""Makes the endpoint of a provider: its address, the key bound to it, and the deadlines."""

import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from codeloop.model.base_url import parse_origin
from codeloop.model.catalog.services import Service, list_service_urls
from codeloop.model.chat import ModelInfo
from codeloop.model.credentials.environment import find_environment_key, load_chain
from codeloop.model.credentials.store import Credentials, KeyringKey
from codeloop.model.errors import ModelUnavailable, NoKey, WrongKeyOrigin
from codeloop.model.provider import (
    Provider,
    describe_missing_address,
    describe_missing_key,
    has_device_sign_in,
    make_protocol_key_headers,
    read_deadline,
    read_headers,
    resolve_settings,
    resolve_url,
)
from codeloop.net.hosts import is_loopback
from codeloop.schema.limits import KEY_HELPER_TTL, MODEL_FIRST_BYTE, MODEL_IDLE
from codeloop.schema.wire import replace

if TYPE_CHECKING:
    from codeloop.model.credentials.signer import Signer
    from codeloop.model.key_origins import ForeignAddress
    from codeloop.model.wire.endpoint import Endpoint

_RESPONSES_HOSTS = ("api.openai.com", "api.x.ai")
"""Hosts that have Responses for sure."""
_RESPONSES_PACKAGES = frozenset({"@ai-sdk/openai", "@ai-sdk/xai"})
"""Values of `npm` that mean Responses."""
_REGION_OPTIONS = ("region", "location")
"""Options that choose among the addresses of one cloud."""
_REGION_PATTERN = r"[a-z0-9-]+"


def make_endpoint(
    provider: Provider,
    credentials: Credentials,
    environment: Mapping[str, str],
    service: Service | None = None,
) -> "Endpoint":
    """Return the provider's endpoint with the key bound to it; `service`: a model's, where known.

    Raises `ModelUnavailable`: the address is not known or no URL, an option is invalid, a key is
    missing (`NoKey`), or the stored one is for another origin (`WrongKeyOrigin`).
    """
    from codeloop.model.wire.endpoint import KEY_HEADERS, Endpoint

    # Options may set what the address is made of, such as a region.
    process_environment, environment = environment, resolve_settings(provider, environment)
    template = _choose_url_template(provider, service)
    url = resolve_url(template, environment)
    if url is None:
        raise ModelUnavailable(describe_missing_address(provider, template, environment))
    # Raises for an invalid or ambiguous URL, before any key is looked up for it.
    parse_origin(url)
    headers = read_headers(provider.id, provider.config.options.get("headers"))
    foreign = _find_foreign_address(provider, url, process_environment)
    key, signer = None, None
    # A configured header with a key replaces every other key.
    key_headers = KEY_HEADERS & {name.lower() for name in headers}
    if provider.has_key_helper and not provider.configured_key:
        signer = _make_key_helper(provider, service)
    else:
        key = _find_key(provider, url, credentials, environment, foreign)
    if isinstance(key, KeyringKey):
        if not key_headers:
            signer = _make_keyring_signer(provider, key, credentials, service)
        key = None
    if key is None and signer is None and not key_headers:
        chain = load_chain(provider.id)
        if chain is not None and chain.describe_credentials(environment):
            if foreign is not None:
                raise foreign.make_error("The cloud credentials")
            signer = chain.open_signer(environment, url)
        elif has_device_sign_in(provider, credentials):
            if foreign is not None:
                raise foreign.make_error("The sign-in")
            signer = _make_device_signer(provider, credentials)
        # A configured address or a local server may need no key: only its answer can tell.
        elif (
            provider.env
            and not provider.has_configured_url
            and not is_loopback(urlsplit(url).hostname or "")
        ):
            raise NoKey(describe_missing_key(provider))
    options = provider.config.options
    return Endpoint(
        base_url=url,
        key=key,
        signer=signer,
        headers=headers,
        first_byte=read_deadline(
            provider.id, "timeout", options.get("timeout"), MODEL_FIRST_BYTE.seconds
        ),
        idle=read_deadline(
            provider.id, "chunkTimeout", options.get("chunkTimeout"), MODEL_IDLE.seconds
        ),
    )


def _find_foreign_address(
    provider: Provider, url: str, environment: Mapping[str, str]
) -> "ForeignAddress | None":
    """Return the address of a provider as one that is none of the user's; None: it is the user's.

    Raises what a foreign address may not be combined with.
    """
    if provider.own is None:
        return None
    # Imported late: most providers are the user's own.
    from codeloop.model.key_origins import find_foreign_address

    own_urls = _list_own_urls(provider, provider.own.provider, environment)
    foreign = find_foreign_address(provider.id, url, own_urls, provider.own.holds)
    if foreign is not None:
        foreign.check_settings(provider.config.models)
    return foreign


def may_lack_responses(provider: Provider, info: ModelInfo, url: str) -> bool:
    """Return whether a configured address may have no Responses: many like OpenAI's
    have chat completions only.
    """
    if not provider.has_configured_url or info.protocol or info.npm not in _RESPONSES_PACKAGES:
        return False
    host = urlsplit(url).hostname or ""
    return not any(host == name or host.endswith(f".{name}") for name in _RESPONSES_HOSTS)


def _choose_url_template(provider: Provider, service: Service | None) -> str:
    """Return the address of a service, perhaps with `${NAME}` in it.

    A configured address of Vertex AI ends with a publisher, which is replaced by that of the model.
    """
    if service is None or not service.url:
        return provider.url
    if not provider.has_configured_url:
        return service.url
    before, separator, _ = provider.url.rpartition("/publishers/")
    return f"{before}{separator}{service.url.rpartition('/')[2]}" if separator else provider.url


def _make_device_signer(provider: Provider, credentials: Credentials) -> "Signer | None":
    from codeloop.model.credentials.device_code import DeviceSigner, make_device_sign_in

    sign_in = make_device_sign_in(provider.id, provider.config.options)
    return None if sign_in is None else DeviceSigner(sign_in, provider.id, credentials)


def _make_keyring_signer(
    provider: Provider, key: KeyringKey, credentials: Credentials, service: Service | None
) -> "Signer":
    from codeloop.model.credentials.system_keyring import KeyringSigner

    make_headers = partial(make_protocol_key_headers, service.protocol if service else "")
    return KeyringSigner(provider.id, key.origin, make_headers, credentials.remember_key)


def _make_key_helper(provider: Provider, service: Service | None) -> "Signer":
    from codeloop.model.credentials.key_helper import KeyHelper, parse_helper_command

    options = provider.config.options
    make_headers = partial(make_protocol_key_headers, service.protocol if service else "")
    ttl = read_deadline(
        provider.id, "apiKeyHelperTtl", options.get("apiKeyHelperTtl"), KEY_HELPER_TTL.seconds
    )
    command = parse_helper_command(provider.id, options["apiKeyHelper"])
    return KeyHelper(provider.id, command, make_headers, ttl)


def _find_key(
    provider: Provider,
    url: str,
    credentials: Credentials,
    environment: Mapping[str, str],
    foreign: "ForeignAddress | None",
) -> str | KeyringKey | None:
    """Return the configured key, else the environment's, else the stored one: a text,
    or its entry in the keyring.

    `foreign`: the address, if it is none of the user's. Raises WrongKeyOrigin.
    """
    if provider.configured_key:
        return provider.configured_key
    own = provider if provider.own is None else provider.own.provider
    environment_key = find_environment_key(provider.env, environment)
    if environment_key is not None and foreign is not None:
        raise foreign.make_error(f"The key in {environment_key.variable}")
    if environment_key is not None and own is not None and environment_key.variable not in own.env:
        raise WrongKeyOrigin(
            f"The project has {provider.name} read its key from {environment_key.variable}, which is not for it.\n"
            f"If you want that, set provider.{provider.id}.env in your own codeloop.json; else correct the project's."
        )
    if environment_key is not None:
        return environment_key.value
    # A key for one of these addresses is valid at all of them, as with Bedrock, which has two.
    templates = (own.default_url, *list_service_urls(own.id, own.npm)) if own is not None else ()
    service_urls = [
        resolved for template in templates if (resolved := resolve_url(template, environment))
    ]
    return credentials.find_key(provider.id, url, service_urls)


def _list_own_urls(
    provider: Provider, own: Provider | None, environment: Mapping[str, str]
) -> list[str]:
    """Return the addresses that the user or the catalog name for a provider;
    a project may choose another region.
    """
    if own is None:
        return []
    regions = {
        name: text
        for name in _REGION_OPTIONS
        if isinstance(text := provider.config.options.get(name), str)
        and re.fullmatch(_REGION_PATTERN, text)
    }
    config = replace(own.config, options={**own.config.options, **regions})
    settings = resolve_settings(replace(own, config=config), environment)
    templates = (own.url, own.default_url, *list_service_urls(own.id, own.npm))
    return [resolved for template in templates if (resolved := resolve_url(template, settings))]
