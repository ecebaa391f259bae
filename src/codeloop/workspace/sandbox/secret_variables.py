"""Which environment variables hold secrets, by their names and values: no
sandboxed program gets them.
"""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

from codeloop.kit.text.secrets import has_key_or_password
from codeloop.kit.wildcard import matches
from codeloop.workspace.sandbox.network.proxy_variables import PROXY_VARIABLES
from codeloop.workspace.sandbox.policy import SandboxPolicy

_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"
"""A word of a variable's name: `npm_config__authToken` has `npm`, `config`, `auth` and `Token`."""
_SENSITIVE_WORD = (
    r"\w*TOKENS?|\w*SECRETS?|\w*PASSW(?:OR)?DS?|\w*PASSWD|\w*PASSW|(?:KEY|STORE)?PASS|\w*PASSPHRASE|\w*PASSCODE|PWD|PW|SSHPASS"
    r"|KEYS?|\w*(?:API|ACCESS|AUTH|ACCOUNT|CLIENT|DEPLOY|ENCRYPTION|MASTER|PRIVATE|SECRET|SIGNING|SSH)KEYS?"
    r"|PATS?|\w*CREDENTIALS?|CREDS?|O?AUTH|AUTHORIZATION|MNEMONIC|PRIVKEY|JWTS?|BEARER|COOKIES?|DSN|WEBHOOKS?|SALT|HMAC"
)
# What the last word of such a name says about it: the value is a place, a kind or a number,
# not the secret itself.
_HARMLESS_ENDINGS = frozenset(
    (
        *(
            "FILE",
            "FILES",
            "PATH",
            "PATHS",
            "DIR",
            "FOLDER",
            "HOME",
            "SOCK",
            "SOCKET",
            "TTY",
            "PROGRAM",
            "COMMAND",
        ),
        *(
            "NAME",
            "TYPE",
            "KIND",
            "MODE",
            "METHOD",
            "ALGORITHM",
            "FORMAT",
            "PROVIDER",
            "PROVIDERS",
            "HELPER",
            "BACKEND",
        ),
        *(
            "URL",
            "URI",
            "ENDPOINT",
            "HOST",
            "PORT",
            "DOMAIN",
            "ISSUER",
            "AUDIENCE",
            "REGION",
            "SCOPE",
            "SCOPES",
        ),
        *(
            "LENGTH",
            "SIZE",
            "COUNT",
            "LIMIT",
            "MAX",
            "MIN",
            "TTL",
            "TIMEOUT",
            "EXPIRY",
            "LIFETIME",
            "DELAY",
            "BITS",
        ),
        *(
            "ENABLED",
            "DISABLED",
            "REQUIRED",
            "POLICY",
            "VERSION",
            "FINGERPRINT",
            "PARALLELISM",
            "SORT",
            "ORDER",
        ),
    )
)
_SECRET_PLACES = frozenset(("WEBHOOK", "WEBHOOKS", "DSN"))
"""Words of names whose value is an address that is a secret itself, whatever the name ends with."""
_SECRET_PAIRS = frozenset((
    *(("CONNECTION", "STRING"), ("CONN", "STR"), ("SEED", "PHRASE"), ("WALLET", "SEED"), ("OTP", "SEED")),
    *(("SONAR", "LOGIN"), ("ACCOUNT", "JSON"), ("KUBECONFIG", "DATA")),
))  # fmt: skip
# The ends of Bundler's variables for the sign-in at a host.
_HOST_ENDINGS = ("__COM", "__NET", "__ORG", "__IO", "__DEV")
# A setting in a connection string.
_SIGN_IN_SETTING = r"(?i)(?:^|[;\s])(?:password|pwd|accountkey|sharedaccesskey)\s*=\s*[^;\s]{4}"
_PLAIN_VALUES = frozenset(
    ("", "true", "false", "yes", "no", "on", "off", "auto", "always", "never", "none", "0", "1")
)
"""Settings, not secrets."""
_COUNT_DIGITS = 9
_COUNT_WORDS = frozenset(("TOKENS", "KEYS", "PASS"))
"""Words of which there may be a number: `MAX_TOKENS=4096`."""
_HARMLESS_NAMES = frozenset((
    *("PWD", "OLDPWD", "GPG_KEY", "GPG_KEYS", "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM"),
    *("LANG", "TMPDIR"),
))  # fmt: skip
"""Variables that programs can't do without, and some that have such a word and no secret."""
# Git's settings in variables. Git fails if one of the values is missing,
# so a secret one is made empty.
_GIT_KEY, _GIT_VALUE = "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"
_MIN_SECRET_CHARS = 12
"""A shorter value may be part of another variable by chance."""


_TOOL_ERRORS = (
    (
        r"no password supplied|password authentication failed|Access denied for user",
        r"PG\w+|MYSQL\w*|DATABASE_\w+|DB_\w+",
    ),
    (
        r"Unable to locate credentials|NoCredentialsError|Could not load credentials|no valid credential",
        r"AWS_\w+",
    ),
    (
        r"ENEEDAUTH|need auth\b|E401\b|npm (?:ERR!|error) .*\b40[13]\b",
        r"NPM_\w+|NODE_AUTH_TOKEN|npm_config_\w+",
    ),
    (
        r"HTTPError: 40[13]|InvalidDistribution|Enter your (?:username|password|API token)",
        r"TWINE_\w+|UV_PUBLISH_\w+",
    ),
    (r"no token found|please run `?cargo login", r"CARGO_\w+"),
    (r"NOAUTH Authentication required|WRONGPASS", r"REDIS\w+"),
    (r"gh auth login|gh: To use GitHub CLI", r"GH_\w+|GITHUB_\w+"),
)
"""Pairs of a pattern that a tool prints when it lacks a secret,
and one of the variables that it reads.
"""
HIDDEN_VARIABLE_TEXT = (
    "a variable of the user's that holds a secret, so sandboxed programs don't get it"
)
_TAIL_CHARS = 20_000
"""Tools print the reason of a failure at the end of their output."""


def find_wanted_variables(
    command: str, output: str, code: int | None, hidden: Iterable[str]
) -> list[str]:
    """Return the hidden variables that a command line names, or that its failure shows it wanted.

    `hidden`: their names; `code`: the exit code, None if it runs or was ended.
    """
    end = output[-_TAIL_CHARS:] if code else ""
    return [
        name
        for name in sorted(hidden)
        if _is_named(name, command) or (end and _is_wanted(name, end))
    ]


def explain_hidden_variable(name: str) -> str:
    """Return a line for the user: which variable a command did not get,
    and what lets it through.
    """
    setting = f'"sandbox": {{"variables": ["{name}"]}}'
    return f"{name} looks like a secret: it is hidden from sandboxed commands. To show it: {setting} in codeloop.json."


def _is_named(name: str, text: str) -> bool:
    if name not in text:
        return False
    # A line that sets the variable itself does not want the user's.
    found = re.findall(rf"(?<!\w){re.escape(name)}(?!\w)=?", text)
    return bool(found) and not any(each.endswith("=") for each in found)


def _is_wanted(name: str, output: str) -> bool:
    if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", output):
        return True
    return any(
        re.fullmatch(names, name) and re.search(words, output) for words, names in _TOOL_ERRORS
    )


def find_secret_variables(
    environment: Mapping[str, str], shown: Collection[str] = ()
) -> dict[str, str]:
    """Return the variables that hold secrets: by their names, by their values,
    or with the value of another such one.

    `shown`: names, or patterns with `*`, of variables that are let through all the same.
    """
    candidates = {
        name: value
        for name, value in environment.items()
        if name not in _HARMLESS_NAMES
        and not name.startswith(_GIT_KEY)
        and not any(matches(name, each) for each in shown)
    }
    secret = {name: value for name, value in candidates.items() if is_secret(name, value)}
    values = [value for value in secret.values() if len(value) >= _MIN_SECRET_CHARS]
    copies = {
        name: value for name, value in candidates.items() if any(each in value for each in values)
    }
    return secret | copies


def find_hidden_variables(
    policy: SandboxPolicy, environment: Mapping[str, str], named_variables: Collection[str] = ()
) -> dict[str, str]:
    """Return the variables that a sandbox's programs don't get: secrets,
    and the user's proxy where none is reached.

    `named_variables`: as in Launch.
    """
    if policy.network == "on":
        # The user's proxy may be the only way to the network, and its address may hold a password.
        return find_secret_variables(
            environment, {*policy.variables, *named_variables, *PROXY_VARIABLES}
        )
    proxies = {name: environment[name] for name in PROXY_VARIABLES if name in environment}
    return find_secret_variables(environment, {*policy.variables, *named_variables}) | proxies


def hide_variables(environment: Mapping[str, str], hidden: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without hidden variables,
    and without others that have the value of one.
    """
    values = [value for value in hidden.values() if len(value) >= _MIN_SECRET_CHARS]
    shown = {
        name: value
        for name, value in environment.items()
        if hidden.get(name) != value and not any(each in value for each in values)
    }
    return shown | {
        name: "" for name in environment.keys() - shown.keys() if name.startswith(_GIT_VALUE)
    }


@lru_cache(maxsize=2_048)
def is_secret(name: str, value: str) -> bool:
    """Return whether a variable holds a secret, as its name says, or its value: a key's form,
    a URL with a password.

    A path of this machine is none: what stands there is hidden or shown as any file.
    """
    if value.lower() in _PLAIN_VALUES or (value.startswith("/") and os.access(value, os.F_OK)):
        return False
    return (
        _is_secret_name(name, value)
        or has_key_or_password(value)
        or ("=" in value and re.search(_SIGN_IN_SETTING, value) is not None)
    )


def _is_secret_name(name: str, value: str) -> bool:
    words = [word.upper() for word in re.findall(_WORD, name)]
    if not _SECRET_PAIRS.isdisjoint(pairwise(words)):
        return words[-1] not in _HARMLESS_ENDINGS
    if name.startswith("BUNDLE_") and name.endswith(_HOST_ENDINGS):
        return True
    secret_words = [
        word
        for before, word in zip(("", *words), words, strict=False)
        # A public key is not a secret.
        if re.fullmatch(_SENSITIVE_WORD, word)
        and not (before == "PUBLIC" and word.startswith("KEY"))
    ]
    if not secret_words:
        return False
    if _SECRET_PLACES.intersection(secret_words):
        return True
    if words[-1] in _HARMLESS_ENDINGS:
        return False
    is_count = value.isdecimal() and len(value) <= _COUNT_DIGITS
    return not (_COUNT_WORDS.issuperset(secret_words) and is_count)
