"""Keys in environment variables, and the environment of child processes without them."""

from collections.abc import Iterable, Mapping

from codeloop.model.catalog.catalog import Catalog

MIN_KEY_CHARS = 12
"""A shorter value is no key, and may be part of another variable by chance."""

SERVER_PASSWORDS = frozenset(("CODELOOP_SERVER_PASSWORD", "OPENCODE_SERVER_PASSWORD"))
"""Passwords of our own server: a program that had one could grant itself permissions in the user's name."""

SIGNING_SECRETS = frozenset(("AWS_SECRET_ACCESS_KEY",))
"""Secrets that requests are signed with; they are never sent themselves."""

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


def holds_key(name: str) -> bool:
    """Return whether a provider's variable holds a key, and not an address, a region or a file's name."""
    return not name.endswith(_SETTING_ENDINGS)


def environment_key(names: Iterable[str], environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Return name and value of the first of a provider's variables that holds a key; None when none is set."""
    for name in names:
        value = environment.get(name, "").strip()
        if value and holds_key(name) and name not in SIGNING_SECRETS:
            return name, value
    return None


def clean_environment(environment: Mapping[str, str], catalog: Catalog, keys: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment without provider keys.

    Left out: every variable that a provider of the catalog names, our server's password, and every other one whose
    value holds the key of such a variable, or one of `keys` (from the credentials file or the configuration).
    """
    names = catalog.environment_names | SERVER_PASSWORDS
    keys_in_use = {environment[name] for name in names & environment.keys() if holds_key(name)} | set(keys)
    secrets = [value for value in keys_in_use if len(value) >= MIN_KEY_CHARS]
    return {
        name: value
        for name, value in environment.items()
        if name not in names and not any(secret in value for secret in secrets)
    }
