"""The environment of the agent in a CI job: without secrets of the job, but with the key of the model that it uses."""

import re
from collections.abc import Collection, Mapping

from codeloop.model.catalog.catalog import Catalog

# Secrets of the host, and the files by which a step of a job sets variables and paths of the next steps.
_HIDDEN_VARIABLES = frozenset(
    (
        *("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE"),
        *("GITHUB_STEP_SUMMARY", "GITHUB_EVENT_PATH", "CODELOOP_GITLAB_TOKEN", "GITLAB_TOKEN", "TRIGGER_PAYLOAD"),
        # This URL contains the job's token.
        "CI_REPOSITORY_URL",
    )
)
# ACTIONS_: tokens for GitHub's caches and artifacts. INPUT_: inputs of an action, such as tokens. CI_: passwords of
# GitLab.
_HIDDEN_PREFIXES = (
    *("ACTIONS_", "INPUT_", "CI_JOB_TOKEN", "CI_JOB_JWT", "CI_REGISTRY_", "CI_DEPENDENCY_PROXY_", "CI_DEPLOY_"),
)
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(?:API|ACCESS|AUTH|DEPLOY|MASTER|PRIVATE|SIGNING|SSH)KEY"
    r"|(?:^|_)(?:KEYS?|PATS?|PASS|PWD|O?AUTH|JWT|DSN|COOKIE|WEBHOOK)(?:_|$)",
    re.IGNORECASE,
)
# The value of such a variable is a place, a name or a number, not the secret itself.
_HARMLESS_NAME = re.compile(
    r"(?:OLD)?PWD|GIT_CONFIG_KEY_\d+|GPG_KEYS?"
    r"|.*_(?:FILE|PATH|DIR|HOME|SOCK|TTY|PROGRAM|NAME|TYPE|HELPER|URL|HOST|PORT|REGION|ID|ENABLED|TIMEOUT|LENGTH)",
    re.IGNORECASE,
)
_ADDRESS_WITH_PASSWORD = re.compile(r"://[^\s/@:]*:[^\s/@]+@")
_PLAIN_VALUE = re.compile(r"|true|false|yes|no|on|off|[01]|\d{1,6}", re.IGNORECASE)
# A shorter value may be part of another variable by chance.
_MIN_SECRET_CHARS = 12
_PROXIES = re.compile(r"(?:https?|all)_proxy", re.IGNORECASE)


def make_agent_environment(
    environment: Mapping[str, str], token: str, model: str, shown: Collection[str] = ()
) -> dict[str, str]:
    """Return the environment of the agent: without what looks like a secret, in its name or its value.

    `token`: the host's, which is in no variable. `model`: as `--model` takes it; only variables of its provider stay of
    those that providers read, for "" those of all. `shown`: names of variables that stay all the same.
    """
    catalog = Catalog()
    provider = catalog.find_row(model.partition("/")[0])
    keys = catalog.environment_names if provider is None else frozenset(provider.env)
    candidates = {
        name: value
        for name, value in environment.items()
        # A workflow may copy the token to a variable of any name, so the values are searched, too.
        if name not in _HIDDEN_VARIABLES and not name.startswith(_HIDDEN_PREFIXES) and not (token and token in value)
    }
    # Without its provider's address, a model is asked at the wrong place; without the proxy, none is reached.
    stays = {name for name in candidates if name in keys or name in shown or _PROXIES.fullmatch(name)}
    hidden = find_secret_variables(candidates, stays)
    return {name: value for name, value in candidates.items() if name not in hidden}


def find_secret_variables(environment: Mapping[str, str], shown: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that hold secrets: by their names, by their values, or with the value of another such one.

    `shown`: names of variables that are let through all the same.
    """
    candidates = {name: value for name, value in environment.items() if name not in shown}
    secret = {name: value for name, value in candidates.items() if _is_secret(name, value)}
    values = [value for value in secret.values() if len(value) >= _MIN_SECRET_CHARS]
    return {name: value for name, value in candidates.items() if any(each in value for each in values)} | secret


def _is_secret(name: str, value: str) -> bool:
    if _ADDRESS_WITH_PASSWORD.search(value):
        return True
    is_named = _SECRET_NAME.search(name) and not _HARMLESS_NAME.fullmatch(name)
    return bool(is_named) and not _PLAIN_VALUE.fullmatch(value) and not value.startswith("/")
