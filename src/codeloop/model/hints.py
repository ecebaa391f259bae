"""What a user can do about a refused request: where its key and address come from, and which models exist."""

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
from codeloop.model.provider import Provider, SettingOrigin, has_device_sign_in, how_to_get_key, resolve_url
from codeloop.model.wire.endpoint import KEY_HEADERS
from codeloop.net.origin import is_loopback


class ProviderHints(Struct, frozen=True):
    """The hints for one model of a provider, looked up lazily."""

    provider: Provider
    info: ModelInfo
    credentials: Credentials
    environment: Mapping[str, str]
    find_origin_of: SettingOrigin
    models: Callable[[], Iterable[str]]
    is_signed_in: bool = False
    """Whether the user signed in with a plugin, which sends the requests."""

    def key(self) -> str:
        """Return the source of the used key and how to change it, or how to set one; never the key."""
        if (origin := self._find_key_origin()) is not None:
            return f"It comes from {origin[0]}. {origin[1]}{self._explain_empty_key()}"
        return f"There is no key for it.{self._explain_empty_key() or ' ' + how_to_get_key(self.provider)}"

    def account(self) -> str:
        """Return the source of the used key as a sentence; empty without a key."""
        origin = self._find_key_origin()
        return "" if origin is None else f" The key comes from {origin[0]}."

    def preferred_key(self) -> str:
        """Describe where a key is set that takes precedence over a stored one; empty: nowhere."""
        origin = self.find_preferred_key()
        return "" if origin is None else origin[0]

    def find_preferred_key(self) -> tuple[str, str] | None:
        """Return the source of a key that takes precedence over a stored one, and how to change it there."""
        name = self.provider.id
        if self.is_signed_in:
            return "a sign-in with a plugin", f"Sign in again: `codeloop auth login {name}`."
        if (origin := self._find_key_header()) is not None:
            return origin
        if self.provider.configured_key:
            origin = self.find_origin_of(("provider", name, "options", "apiKey"))
            return origin or ("the configuration", "Correct it there.")
        if self.provider.has_key_helper:
            origin = self.find_origin_of(("provider", name, "options", "apiKeyHelper"))
            return origin or ("the program of `apiKeyHelper`", "Correct it in codeloop.json.")
        environment_value = environment_key(self.provider.env, self.environment)
        if environment_value is not None:
            alternative = f", or unset it to use the stored key of {name}" if self._is_stored() else ""
            return (
                f"the environment variable {environment_value[0]}",
                f"Set {environment_value[0]} to another key and start codeloop again{alternative}.",
            )
        return None

    def _find_key_origin(self) -> tuple[str, str] | None:
        """Return the one source of the key that was sent, and how to change it there."""
        name = self.provider.id
        if (origin := self.find_preferred_key()) is not None:
            return origin
        if self._is_stored():
            is_in_keyring = isinstance(self.credentials.entries()[name], KeyringKey)
            where = "the key in the system's keyring" if is_in_keyring else f"the stored key ({self.credentials.path})"
            return where, f"Replace it: `codeloop auth login {name}`."
        if has_device_sign_in(self.provider, self.credentials):
            return f"a sign-in ({self.credentials.path})", f"Sign in again: `codeloop auth login {name}`."
        if (chain := chain_of(name)) is not None and (location := chain.find(self.environment)):
            return location, f"Sign in again, or change it there. {chain.advice}"
        return None

    def _explain_empty_key(self) -> str:
        """Return where the configuration sets an empty `apiKey`, which does not count; empty: nowhere."""
        empty_key_origin = (
            None
            if self.provider.configured_key
            else self.find_origin_of(("provider", self.provider.id, "options", "apiKey"))
        )
        if empty_key_origin is None:
            return ""
        return f" `apiKey` is empty: it comes from {empty_key_origin[0]}. {empty_key_origin[1]}"

    def url(self) -> str:
        """Return the setting that holds the base URL, and the file that it is in."""
        name = self.provider.id
        for keys in (("provider", name, "options", "baseURL"), ("provider", name, "api")):
            if (origin := self.find_origin_of(keys)) is not None:
                return f"provider.{name}.{'.'.join(keys[2:])}, which comes from {origin[0]}"
        return f"provider.{name}.options.baseURL"

    async def suggest_models(self) -> str:
        """Return similar models, as ` Did you mean ...?`; a local server is asked for its own."""
        names: list[str] = [*self.models()]
        url = resolve_url(self.provider.url, self.environment) or ""
        if is_loopback(urlsplit(url).hostname or ""):
            for discovered_server in await discover([LocalServer(self.provider.id, self.provider.name, url)]):
                names = [*discovered_server.models]
        alternatives = [name for name in names if name != self.info.id]
        return suggest_names(
            f"{self.provider.id}/{name}" for name in find_similar(self.info.id, alternatives, parts=True)
        )

    def _find_key_header(self) -> tuple[str, str] | None:
        """Return where a header is set that carries a key, which replaces every other key."""
        name = self.provider.id
        options: Any = self.provider.config.options.get("headers") or {}
        row = self.provider.config.models.get(self.info.id)
        tables: list[tuple[Iterable[str], tuple[str, ...]]] = [
            (options if isinstance(options, dict) else (), ("provider", name, "options", "headers")),
            (row.headers if row else (), ("provider", name, "models", self.info.id, "headers")),
        ]
        for headers, keys in tables:
            for header in headers:
                if header.lower() in KEY_HEADERS:
                    return self.find_origin_of((*keys, header)) or (
                        f"the header {header} of the configuration",
                        "Correct it.",
                    )
        return None

    def _is_stored(self) -> bool:
        try:
            return self.provider.id in self.credentials.entries()
        except ModelUnavailable:
            return False
