"""Hints for fixing a refused request: where its key and address are set, and which models exist.

`wire/service_errors.py` puts them into messages; lists of providers and `codeloop auth login` name
a key that takes precedence over a stored one. Only `make_hints` in `providers.py` makes them, since
they need the tables of `Providers`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from codeloop.model.catalog.vendors import LocalServer
from codeloop.model.chat import ModelInfo
from codeloop.model.credentials.environment import find_environment_key, load_chain
from codeloop.model.credentials.store import Credentials, KeyringKey
from codeloop.model.errors import ModelUnavailable
from codeloop.model.provider import (
    Provider,
    SettingFinder,
    describe_key_setup,
    has_device_sign_in,
    resolve_url,
)
from codeloop.model.wire.endpoint import KEY_HEADERS
from codeloop.net.hosts import find_url_host, is_loopback


class KeySource(NamedTuple):
    """Where a key is set, and how to change it there, as a sentence."""

    location: str
    advice: str


class ProviderHints(Struct, frozen=True):
    """The hints for one model of a provider, looked up lazily."""

    provider: Provider
    info: ModelInfo
    credentials: Credentials
    environment: Mapping[str, str]
    find_setting: SettingFinder
    list_models: Callable[[], Iterable[str]]
    is_sent_by_plugin: bool = False
    """Whether a plugin, with which the user signed in, sends the requests."""

    def describe_key(self) -> str:
        """Return where the key in use comes from and how to change it, or how to set one;
        never the key itself.
        """
        if (source := self._find_key_source()) is not None:
            return f"It comes from {source.location}. {source.advice}{self._explain_empty_key()}"
        return f"There is no key for it.{self._explain_empty_key() or ' ' + describe_key_setup(self.provider)}"

    def describe_key_source(self) -> str:
        """Return where the key in use comes from, as the sentence ` The key comes from ...`;
        empty without a key.
        """
        source = self._find_key_source()
        return "" if source is None else f" The key comes from {source.location}."

    def describe_preferred_key(self) -> str:
        """Return the location of a key that takes precedence over a stored one;
        empty: there is none.
        """
        source = self._find_preferred_key()
        return "" if source is None else source.location

    def _find_preferred_key(self) -> KeySource | None:
        """Return the source of a key that takes precedence over a stored one.

        The order is that in which `endpoints.make_endpoint` looks for a key.
        """
        name = self.provider.id
        if self.is_sent_by_plugin:
            return KeySource(
                "a sign-in with a plugin", f"Sign in again: `codeloop auth login {name}`."
            )
        if (source := self._find_key_header()) is not None:
            return source
        if self.provider.configured_key:
            fallback = KeySource("the configuration", "Correct it there.")
            return self._find_source(("provider", name, "options", "apiKey")) or fallback
        if self.provider.has_key_helper:
            fallback = KeySource("the program of `apiKeyHelper`", "Correct it in codeloop.json.")
            return self._find_source(("provider", name, "options", "apiKeyHelper")) or fallback
        environment_key = find_environment_key(self.provider.env, self.environment)
        if environment_key is None:
            return None
        variable = environment_key.variable
        alternative = f", or unset it to use the stored key of {name}" if self._is_stored() else ""
        return KeySource(
            f"the environment variable {variable}",
            f"Set {variable} to another key and start codeloop again{alternative}.",
        )

    def _find_source(self, keys: tuple[str, ...]) -> KeySource | None:
        """Return where a setting is; None: it is not configured."""
        origin = self.find_setting(keys)
        return None if origin is None else KeySource(*origin)

    def _find_key_source(self) -> KeySource | None:
        """Return the source of the key that was sent; None: there is no key."""
        name = self.provider.id
        if (source := self._find_preferred_key()) is not None:
            return source
        if self._is_stored():
            is_in_keyring = isinstance(self.credentials.read_entries()[name], KeyringKey)
            stored = (
                "the key in the system's keyring"
                if is_in_keyring
                else f"the stored key ({self.credentials.path})"
            )
            return KeySource(stored, f"Replace it: `codeloop auth login {name}`.")
        if has_device_sign_in(self.provider, self.credentials):
            location = f"a sign-in ({self.credentials.path})"
            return KeySource(location, f"Sign in again: `codeloop auth login {name}`.")
        if (chain := load_chain(name)) is not None and (
            location := chain.describe_credentials(self.environment)
        ):
            return KeySource(location, f"Sign in again, or change it there. {chain.advice}")
        return None

    def _explain_empty_key(self) -> str:
        """Return a note on an empty `apiKey` of the configuration, which does not count;
        empty: there is none.
        """
        if self.provider.configured_key:
            return ""
        source = self._find_source(("provider", self.provider.id, "options", "apiKey"))
        return (
            ""
            if source is None
            else f" `apiKey` is empty: it comes from {source.location}. {source.advice}"
        )

    def describe_url_setting(self) -> str:
        """Return the setting that holds the base URL, and the file that it is in."""
        name = self.provider.id
        for keys in (("provider", name, "options", "baseURL"), ("provider", name, "api")):
            if (source := self._find_source(keys)) is not None:
                return f"provider.{name}.{'.'.join(keys[2:])}, which comes from {source.location}"
        return f"provider.{name}.options.baseURL"

    async def suggest_models(self) -> str:
        """Return similar models, as ` Did you mean ...?`; a local server is asked for its own."""
        from codeloop.kit.text.suggest import find_similar, format_suggestion

        # The catalog knows the models of a vendor,
        # but not those that are installed on this machine.
        names: list[str] = [*self.list_models()]
        url = resolve_url(self.provider.url, self.environment) or ""
        if is_loopback(find_url_host(url)):
            # Imported late: only a server that does not have the model is asked
            # for those that it has.
            from codeloop.model.catalog.local_servers import discover_servers

            for found in await discover_servers(
                [LocalServer(self.provider.id, self.provider.name, url)]
            ):
                names = [*found.models]
        alternatives = [name for name in names if name != self.info.id]
        return format_suggestion(
            f"{self.provider.id}/{name}"
            for name in find_similar(self.info.id, alternatives, parts=True)
        )

    def _find_key_header(self) -> KeySource | None:
        """Return the source of a header that carries a key, which replaces every other key;
        None: there is none.
        """
        name = self.provider.id
        options: Any = self.provider.config.options.get("headers") or {}
        row = self.provider.config.models.get(self.info.id)
        tables: list[tuple[Iterable[str], tuple[str, ...]]] = [
            (
                options if isinstance(options, dict) else (),
                ("provider", name, "options", "headers"),
            ),
            (row.headers if row else (), ("provider", name, "models", self.info.id, "headers")),
        ]
        for headers, keys in tables:
            for header in headers:
                if header.lower() in KEY_HEADERS:
                    fallback = KeySource(f"the header {header} of the configuration", "Correct it.")
                    return self._find_source((*keys, header)) or fallback
        return None

    def _is_stored(self) -> bool:
        """Return whether a key is stored; False also for a broken file,
        which is reported elsewhere.
        """
        try:
            return self.provider.id in self.credentials.read_entries()
        except ModelUnavailable:
            return False
