"""The environment of the agent in a CI job: without secrets of the job, but with the key of the model that it uses."""

import re
from collections.abc import Collection, Mapping

from codeloop.model.catalog.catalog import Catalog
from codeloop.workspace.sandbox.secret_variables import find_secret_variables

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
_PROXIES = r"(?i)(?:https?|all)_proxy"


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
    stays = {name for name in candidates if name in keys or name in shown or re.fullmatch(_PROXIES, name)}
    hidden = find_secret_variables(candidates, stays)
    return {name: value for name, value in candidates.items() if name not in hidden}
