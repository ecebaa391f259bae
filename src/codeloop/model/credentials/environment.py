"""Finds keys in environment variables, and removes them from the environment of child processes;
loads the credentials of clouds (`CloudChain`) for the providers that take them.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from codeloop.kit.lazy import load_object
from codeloop.kit.wildcard import matches
from codeloop.model.catalog.catalog import Catalog

if TYPE_CHECKING:
    from codeloop.model.credentials.cloud_chain import CloudChain

CHAIN_TARGETS: dict[str, str] = {
    "google-vertex": "model.credentials.google.chain:CHAIN",
    "google-vertex-anthropic": "model.credentials.google.chain:CHAIN",
    "amazon-bedrock": "model.credentials.aws.chain:CHAIN",
}
"""By provider: the name of its `CloudChain`, whose module is imported when it is first used."""


def load_chain(provider_id: str) -> "CloudChain | None":
    """Return a provider's `CloudChain`; None for a provider that takes no cloud credentials."""
    target = CHAIN_TARGETS.get(provider_id)
    return load_object(target) if target else None


MIN_KEY_CHARS = 12
"""A shorter value is hardly a key, and may be part of another variable by chance."""

SERVER_PASSWORD_VARIABLES = frozenset(
    ("CODELOOP_SERVER_PASSWORD", "OPENCODE_PASSWORD", "OPENCODE_SERVER_PASSWORD")
)
"""Passwords of our own server: a program that had one could grant itself
permissions in the user's name.
"""

SIGNING_SECRET_VARIABLES = frozenset(("AWS_SECRET_ACCESS_KEY",))
"""Secrets that requests are signed with; they are never sent themselves."""

# models.dev lists all variables of a provider, keys and settings alike.
_SETTING_ENDINGS = (
    "_ID",
    "_NAME",
    "_REGION",
    "_HOST",
    "_PROJECT",
    "_LOCATION",
    "_URL",
    "_ENDPOINT",
    "_ACCOUNT",
    "_CREDENTIALS",
)


class EnvironmentKey(NamedTuple):
    """A key in the environment: the variable's name and its value."""

    variable: str
    value: str


def is_key_variable(name: str) -> bool:
    """Return whether a provider's variable is for a key, not for an address,
    a region or a file's name.
    """
    return not name.endswith(_SETTING_ENDINGS)


def find_environment_key(
    names: Iterable[str], environment: Mapping[str, str]
) -> EnvironmentKey | None:
    """Return the first of a provider's variables that holds a key; None: none is set."""
    for name in names:
        value = environment.get(name, "").strip()
        if value and is_key_variable(name) and name not in SIGNING_SECRET_VARIABLES:
            return EnvironmentKey(name, value)
    return None


def remove_keys(
    environment: Mapping[str, str],
    catalog: Catalog,
    keys: Iterable[str] = (),
    shown: Iterable[str] = (),
) -> dict[str, str]:
    """Return the environment without provider keys, except those let through (`shown`: names,
    `*` for any text).

    Left out: every variable that a provider of the catalog names, our server's password, and every
    other one whose value holds the key of such a variable, or one of `keys` (from the credentials
    file or the configuration).
    """
    # A model runs commands in this environment: a key must not be found there, under whatever name.
    shown_patterns = tuple(shown)
    names = catalog.environment_names | SERVER_PASSWORD_VARIABLES
    provider_keys = {
        environment[name].strip() for name in names & environment.keys() if is_key_variable(name)
    }
    secrets = [value for value in provider_keys | set(keys) if len(value) >= MIN_KEY_CHARS]
    return {
        name: value
        for name, value in environment.items()
        if (
            name not in SERVER_PASSWORD_VARIABLES
            and any(matches(name, each) for each in shown_patterns)
        )
        or (name not in names and not any(secret in value for secret in secrets))
    }
