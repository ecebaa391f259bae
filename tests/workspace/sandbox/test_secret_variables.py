"""Variables that hold secrets don't reach sandboxed programs,
unless the user's configuration lets them through.
"""

from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.process.shells import ShellCommand, ShellContext
from codeloop.workspace.sandbox.secret_variables import (
    find_secret_variables,
    find_wanted_variables,
    hide_variables,
)
from tests.workspace.sandbox.conftest import Attacked

VALUE = "Zq8vN3rT6yK1"
SECRET_NAMES = Path(__file__).with_name("secret_names.txt").read_text().split()
SECRET_VALUES = {
    "DATABASE_URL": "postgres://app:hunter22@db.example/app",
    "REDIS_URL": "redis://:hunter22@cache.example:6379/0",
    "AMQP": "amqps://me:hunter22@mq.example/vhost",
    "PIP_INDEX_URL": "https://me:hunter22@pypi.example/simple",
    "MY_INDEX": "https://0123456789abcdef0123@pypi.example/simple",
    "STORAGE": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=hunter22hunter22==",
    "MSSQL": "Server=db.example;User Id=app;Password=hunter22;",
    "LIBPQ": "host=db.example dbname=app password=hunter22",
    "CALLBACK": "https://example.com/hook?access_token=hunter22hunter22",
    "NOTIFY": "https://hooks.slack.com/services/T000/B000/abcdefghijklmnop1234",
    "DEPLOY": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "THING": "AKIAABCDEFGHIJKLMNOP",
    "GIT_EXTRA": "AUTHORIZATION: basic eDp5ejEyMzQ1Njc4",
    "CERT": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    "ASSERTION": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
}
KEPT = {
    **dict.fromkeys(
        ("PATH", "HOME", "USER", "SHELL", "TERM", "LANG", "PWD", "OLDPWD", "EDITOR", "VIRTUAL_ENV"),
        VALUE,
    ),
    **dict.fromkeys(
        (
            "GPG_TTY",
            "GPG_KEY",
            "KEYMAP",
            "KEYBOARD",
            "KEYBOARD_LAYOUT",
            "KEYTIMEOUT",
            "MONKEY",
            "TURKEY",
        ),
        VALUE,
    ),
    **dict.fromkeys(
        (
            "HOTKEYS_CONFIG",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "AUTHORITY",
            "XAUTHORITY",
            "PATTERN",
            "PATCH",
        ),
        VALUE,
    ),
    **dict.fromkeys(
        ("COMPASS", "BYPASS", "PASSENGER", "TOKENIZER", "SECRETARY", "CREDIT", "SESSION_MANAGER"),
        VALUE,
    ),
    **dict.fromkeys(
        ("GIT_CONFIG_KEY_0", "GIT_CONFIG_COUNT", "SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS"),
        VALUE,
    ),
    **dict.fromkeys(
        ("AWS_REGION", "AWS_PROFILE", "OAUTH_CLIENT_NAME", "PUBLIC_KEY", "SSH_PUBLIC_KEY"), VALUE
    ),
    "TOKENIZERS_PARALLELISM": "false",
    "MAX_TOKENS": "4096",
    "MAX_OUTPUT_TOKENS": "32000",
    "USE_AUTH": "true",
    "AUTH_ENABLED": "1",
    "TOKEN_TTL": "3600",
    "AUTH_URL": "https://login.example/authorize",
    "VAULT_TOKEN_FILE": "/run/secrets/absent",
    "ANSIBLE_VAULT_PASSWORD_FILE": "vault.txt",
    "SSL_KEY": "/etc/passwd",
    "CARGO_REGISTRY_CREDENTIAL_PROVIDER": "cargo:token",
    "GOPROXY": "https://proxy.golang.org,direct",
    "RANDOM_SEED": "1234",
    "PYTHONHASHSEED": "0",
    "BUNDLE_BUILD__SQLITE3": "--with-sqlite3-dir=/opt",
    "PASSWORD_HINT_URL": "https://login.example/?password=",
    "PLAIN_URL": "postgres://app@db.example/app",
    "GIT_SSH_URL": "ssh://git@github.com/a/b",
    "LS_COLORS": "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33",
    "PS1": r"\u@\h:\w\$ ",
}


def test_one_hundred_secrets_are_known_by_name_or_value_and_harmless_variables_are_kept() -> None:
    assert len(SECRET_NAMES) + len(SECRET_VALUES) >= 100
    environment = {
        **{name: f"{name[:3]}-{VALUE}-{name}" for name in SECRET_NAMES},
        **SECRET_VALUES,
        **KEPT,
    }
    assert find_secret_variables(environment).keys() == {*SECRET_NAMES, *SECRET_VALUES}


def test_a_copy_of_a_secret_under_another_name_is_hidden() -> None:
    environment = {
        "GH_TOKEN": "abcdefghijkl-1234",
        "COPY": "x abcdefghijkl-1234",
        "SHORT_TOKEN": "abc",
        "OTHER": "abcd",
    }
    hidden = find_secret_variables(environment)
    assert hidden.keys() == {"GH_TOKEN", "COPY", "SHORT_TOKEN"}
    assert hide_variables({"OTHER": "abcd", "LATER": "abcdefghijkl-1234"}, hidden) == {
        "OTHER": "abcd"
    }


def test_what_the_configuration_names_is_let_through() -> None:
    environment = {
        "NPM_TOKEN": VALUE,
        "APP_KEY": VALUE[:8],
        "APP_SECRET": VALUE[:9],
        "OTHER_SECRET": VALUE[:10],
    }
    assert find_secret_variables(environment, ["NPM_TOKEN", "APP_*"]).keys() == {"OTHER_SECRET"}


def test_a_secret_setting_of_git_is_emptied_since_git_fails_without_it() -> None:
    settings = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraheader"}
    environment = {**settings, "GIT_CONFIG_VALUE_0": "AUTHORIZATION: basic eDp5ejEyMzQ1Njc4"}
    hidden = find_secret_variables(environment)
    assert hide_variables(environment, hidden) == {**settings, "GIT_CONFIG_VALUE_0": ""}


@pytest.mark.parametrize(
    ("command", "output", "code", "wanted"),
    [
        ('curl -H "Authorization: Bearer $GH_TOKEN" https://api.github.com', "", 0, ["GH_TOKEN"]),
        (
            "python3 -c 'import os; print(os.environ[\"GH_TOKEN\"])'",
            "KeyError: 'GH_TOKEN'",
            1,
            ["GH_TOKEN"],
        ),
        ("GH_TOKEN=x ./ask.sh", "", 0, []),
        ("echo $GH_TOKENS", "", 0, []),
        ("make release", "Failed to replace env in config: ${NPM_TOKEN}", 1, ["NPM_TOKEN"]),
        ("make release", "NPM_TOKEN is fine", 0, []),
        ("psql -h db", "psql: error: fe_sendauth: no password supplied", 2, ["PGPASSWORD"]),
        ("npm publish", "npm error code ENEEDAUTH\nnpm error need auth", 1, ["NPM_TOKEN"]),
        (
            "gh pr list",
            "To get started with GitHub CLI, please run:  gh auth login",
            4,
            ["GH_TOKEN"],
        ),
        ("pytest", "AssertionError", 1, []),
    ],
)
def test_a_line_or_a_failure_that_wants_a_hidden_variable_is_recognised(
    command: str, output: str, code: int, wanted: list[str]
) -> None:
    assert (
        find_wanted_variables(command, output, code, ["GH_TOKEN", "NPM_TOKEN", "PGPASSWORD"])
        == wanted
    )


def _set(it: Attacked, **variables: str) -> ShellContext:
    return replace(it.context, environment={**it.context.environment, **variables})


async def _run(it: Attacked, context: ShellContext, text: str, config: SandboxConfig) -> str:
    policy = it.shells.make_policy(it.place, config)
    result = await it.shells.run(context, ShellCommand(text, 60, None, policy), lambda _: None)
    return "\n".join((result.output, *result.notes, *result.warnings))


async def test_a_sandboxed_command_gets_no_secret_and_is_told_what_lets_it_through(
    it: Attacked,
) -> None:
    context = _set(
        it,
        GH_TOKEN=VALUE,
        DATABASE_URL=SECRET_VALUES["DATABASE_URL"],
        HTTPS_PROXY="http://me:pw@proxy:1",
    )
    config = SandboxConfig(network="off")
    shown = await _run(it, context, "env; tr '\\0' '\\n' < /proc/$PPID/environ", config)
    assert VALUE not in shown
    assert "hunter22" not in shown
    assert "me:pw" not in shown
    shown = await _run(it, context, 'echo "<$GH_TOKEN>"', config)
    assert "<>" in shown
    assert "blocked: GH_TOKEN, a variable of the user's that holds a secret" in shown
    assert '"sandbox": {"variables": ["GH_TOKEN"]}' in shown
    # The user is told once.
    assert '"variables"' not in await _run(it, context, 'echo "<$GH_TOKEN>"', config)
    shown = await _run(
        it, context, 'echo "<$GH_TOKEN>"', SandboxConfig(network="off", variables=["GH_TOKEN"])
    )
    assert shown == f"<{VALUE}>\n"


async def test_what_a_command_outside_had_does_not_follow_into_the_sandbox(it: Attacked) -> None:
    context = _set(it, GH_TOKEN=VALUE)
    outside = await it.shells.run(
        context,
        ShellCommand('export COPY="$GH_TOKEN" OWN=1; echo "<$GH_TOKEN>"', 60),
        lambda _: None,
    )
    assert outside.output == f"<{VALUE}>\n"
    shown = await _run(it, context, "env", SandboxConfig(network="off"))
    assert "OWN=1" in shown
    assert VALUE not in shown
    again = await it.shells.run(context, ShellCommand('echo "<$GH_TOKEN>"', 60), lambda _: None)
    assert again.output == f"<{VALUE}>\n"


async def test_a_variable_that_an_extension_sets_reaches_the_command(
    it: Attacked, tmp_path: Path
) -> None:
    context = replace(_set(it, APP_TOKEN=VALUE), pinned_variables=frozenset({"APP_TOKEN"}))
    assert (
        await _run(it, context, 'echo "<$APP_TOKEN>"', SandboxConfig(network="off"))
        == f"<{VALUE}>\n"
    )
