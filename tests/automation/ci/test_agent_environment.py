"""Which variables of a job the agent gets."""

import pytest

from codeloop_automation.ci.agent_program import make_agent_environment

TOKEN = "t0ken-of-the-host"
MODEL_KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef",
    "OPENAI_API_KEY": "sk-0123456789abcdefghij",
}
HARMLESS = {
    "PATH": "/bin",
    "HOME": "/root",
    "CI": "true",
    "GITHUB_SHA": "abc",
    "GITHUB_REPOSITORY": "acme/calc",
    "LANG": "C.UTF-8",
    "JAVA_HOME": "/usr/lib/jvm",
    "MAX_TOKENS": "4096",
    "GPG_KEY": "A035C8C19219BA821ECEA86B64E628F8D684696D",
    "SSH_AUTH_SOCK": "/tmp/agent.sock",
    "PIP_CACHE_DIR": "/cache",
    "HTTPS_PROXY": "http://me:word@proxy.example:8080",
    "TOKEN_URL": "https://login.example/token",
    "KEYBOARD": "de",
    "MONKEY_PATCH": "yes please",
}
SECRETS = {
    "GITHUB_TOKEN": TOKEN,
    "GH_TOKEN": "x",
    "MY_COPY": f"x {TOKEN} y",
    "ACTIONS_RUNTIME_TOKEN": "x",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x",
    "ACTIONS_CACHE_URL": "https://cache.example",
    "INPUT_ANYTHING": "x",
    "GITHUB_ENV": "/f",
    "GITHUB_EVENT_PATH": "/f",
    "CI_JOB_TOKEN": "j",
    "CI_JOB_TOKEN_V2": "j",
    "CI_REGISTRY_PASSWORD": "j",
    "CI_DEPLOY_PASSWORD": "j",
    "CI_DEPENDENCY_PROXY_PASSWORD": "j",
    "CI_REPOSITORY_URL": "https://gitlab-ci-token:j@gitlab.example/a/b.git",
    "CODELOOP_GITLAB_TOKEN": "j",
    "NPM_TOKEN": "npm-secret-value",
    "NODE_AUTH_TOKEN": "x-y",
    "DEPLOY_KEY": "deploy-secret-value",
    "SSH_PRIVATE_KEY": "-----BEGIN",
    "TWINE_PASSWORD": "word",
    "PGPASSWORD": "word",
    "DATABASE_URL": "postgres://app:word@db.example/app",
    "MY_PAT": "abcdef",
    "SENTRY_DSN": "abcdef",
    "DOCKER_AUTH_CONFIG": '{"auths": {}}',
    "npm_config__authToken": "abcdef",
    "HEADER": "Bearer deploy-secret-value",
}


@pytest.mark.parametrize(
    ("model", "keys"),
    [
        ("anthropic/claude-sonnet-4-5", {"ANTHROPIC_API_KEY"}),
        ("openai/gpt-5", {"OPENAI_API_KEY"}),
        ("", {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}),
    ],
)
def test_the_agent_gets_no_secret_but_the_key_of_its_model(model: str, keys: set[str]) -> None:
    given = {**HARMLESS, **MODEL_KEYS, **SECRETS}
    wanted = {**HARMLESS, **{name: MODEL_KEYS[name] for name in keys}}
    assert make_agent_environment(given, TOKEN, model) == wanted


def test_a_variable_that_is_named_is_passed_unless_it_is_the_hosts() -> None:
    given = {"ACME_API_KEY": "acme-secret-value", "GITHUB_TOKEN": TOKEN, "COPY": TOKEN}
    shown = ("ACME_API_KEY", "GITHUB_TOKEN", "COPY")
    assert make_agent_environment(given, TOKEN, "acme/large", shown) == {
        "ACME_API_KEY": "acme-secret-value"
    }
