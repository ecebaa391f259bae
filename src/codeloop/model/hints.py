"""Hints for fixing a refused request: where key and address come from, and which models exist."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from codeloop.kit.suggest import find_similar, suggest_names
from codeloop.model.catalog.local_servers import discover
from codeloop.model.catalog.vendors import LocalServer
from codeloop.model.chat import ModelInfo
from codeloop.model.credentials.chains import chain_of
from codeloop.model.credentials.environment import environment_key
from codeloop.model.credentials.store import Credentials, KeyringKey
from codeloop.model.errors import ModelUnavailable
from codeloop.model.provider import Provider, Written, has_device_sign_in, how_to_get_key, resolve_url
from codeloop.model.wire.endpoint import KEY_HEADERS
from codeloop.net.origin import is_loopback


class ProviderHints(Struct, frozen=True):
    """The hints for one model of a provider, looked up lazily."""

    provider: Provider
    info: ModelInfo
    credentials: Credentials
    environment: Mapping[str, str]
    written: Written
    models: Callable[[], Iterable[str]]
    is_signed_in: bool = False
    """Whether a plugin that somebody signed in with sends the requests."""

    def key(self) -> str:
        """Return the source of the used key and how to change it, or how to set one; never the key."""
        if (origin := self._origin()) is not None:
            return f"It comes from {origin[0]}. {origin[1]}{self._empty()}"
        return f"There is no key for it.{self._empty() or ' ' + how_to_get_key(self.provider)}"

    def account(self) -> str:
        """Return the source of the used key as a sentence; empty without a key."""
        origin = self._origin()
        return "" if origin is None else f" The key comes from {origin[0]}."

    def preferred_key(self) -> str:
        """Return where there is a key that counts before a stored one, in words; empty: nowhere."""
        found = self.find_preferred()
        return "" if found is None else found[0]

    def find_preferred(self) -> tuple[str, str] | None:
        """Return the source of a key that counts before a stored one, and how to change it there."""
        name = self.provider.id
        if self.is_signed_in:
            return "a sign-in with a plugin", f"Sign in again: `codeloop auth login {name}`."
        if (origin := self._header()) is not None:
            return origin
        if self.provider.configured_key:
            origin = self.written(("provider", name, "options", "apiKey"))
            return origin or ("the configuration", "Correct it there.")
        if self.provider.has_key_helper:
            origin = self.written(("provider", name, "options", "apiKeyHelper"))
            return origin or ("the program of `apiKeyHelper`", "Correct it in codeloop.json.")
        environment_value = environment_key(self.provider.env, self.environment)
        if environment_value is not None:
            other = f", or unset it to use the stored key of {name}" if self._is_stored() else ""
            return (
                f"the environment variable {environment_value[0]}",
                f"Set {environment_value[0]} to another key and start codeloop again{other}.",
            )
        return None

    def _origin(self) -> tuple[str, str] | None:
        """Return the one source of the key that was sent, and how to change it there."""
        name = self.provider.id
        if (found := self.find_preferred()) is not None:
            return found
        if self._is_stored():
            is_there = isinstance(self.credentials.entries()[name], KeyringKey)
            where = "the key in the system's keyring" if is_there else f"the stored key ({self.credentials.path})"
            return where, f"Replace it: `codeloop auth login {name}`."
        if has_device_sign_in(self.provider, self.credentials):
            return f"a sign-in ({self.credentials.path})", f"Sign in again: `codeloop auth login {name}`."
        if (chain := chain_of(name)) is not None and (location := chain.find(self.environment)):
            return location, f"Sign in again, or change it there. {chain.advice}"
        return None

    def _empty(self) -> str:
        """Return where the configuration sets an `apiKey` that is empty, which is why it does not count."""
        example = (
            None if self.provider.configured_key else self.written(("provider", self.provider.id, "options", "apiKey"))
        )
        return f" `apiKey` is empty: it comes from {example[0]}. {example[1]}" if example is not None else ""

    def url(self) -> str:
        """Return the setting that holds the base URL, with its place."""
        name = self.provider.id
        for keys in (("provider", name, "options", "baseURL"), ("provider", name, "api")):
            if (url_found := self.written(keys)) is not None:
                return f"provider.{name}.{'.'.join(keys[2:])}, which comes from {url_found[0]}"
        return f"provider.{name}.options.baseURL"

    async def suggest_models(self) -> str:
        """Return similar models, as ` Did you mean ...?`; a local server is asked for its own."""
        names: list[str] = [*self.models()]
        url = resolve_url(self.provider.url, self.environment) or ""
        if is_loopback(urlsplit(url).hostname or ""):
            for discovered_server in await discover([LocalServer(self.provider.id, self.provider.name, url)]):
                names = [*discovered_server.models]
        others = [name for name in names if name != self.info.id]
        return suggest_names(f"{self.provider.id}/{name}" for name in find_similar(self.info.id, others, parts=True))

    def _header(self) -> tuple[str, str] | None:
        """Return where a header is written that carries a key in the place of every other one."""
        name = self.provider.id
        options: Any = self.provider.config.options.get("headers") or {}
        row = self.provider.config.models.get(self.info.id)
        places: list[tuple[Iterable[str], tuple[str, ...]]] = [
            (options if isinstance(options, dict) else (), ("provider", name, "options", "headers")),
            (row.headers if row else (), ("provider", name, "models", self.info.id, "headers")),
        ]
        for headers, keys in places:
            for header in headers:
                if header.lower() in KEY_HEADERS:
                    return self.written((*keys, header)) or (f"the header {header} of the configuration", "Correct it.")
        return None

    def _is_stored(self) -> bool:
        try:
            return self.provider.id in self.credentials.entries()
        except ModelUnavailable:
            return False
