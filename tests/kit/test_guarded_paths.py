"""Which files are asked about whatever a blanket rule allows."""

import pytest

from codeloop.kit.guarded_paths import (
    OPENED_PATHS,
    fold_path,
    is_opened,
    is_protected,
    is_secret,
    needs_confirmation,
)


@pytest.mark.parametrize(
    "path",
    [
        ".env", "app/.env", ".env.local", ".env.production", "prod.env", ".envrc", "a/.envrc", "id_rsa",
        "keys/id_ed25519",
        "server.pem", "tls/private.key", "store.p12", "x.pfx", "release.jks", ".netrc", ".npmrc", "home/.pypirc",
        "credentials", "config/credentials.json", ".git-credentials", ".aws/credentials", "/home/u/.aws/config",
        ".ssh/config", "/srv/.ssh/known_hosts", ".gnupg/x", ".kube/config", ".docker/config.json",
        "my-service-account.json", "gcp/service_account_prod.json", ".ENV", "App/.Env.Local", "ID_RSA",
        ".config/gh/hosts.yml",
    ],
)  # fmt: skip
def test_files_that_hold_keys(path: str) -> None:
    assert is_secret(path)


@pytest.mark.parametrize(
    "path",
    [
        "", ".", ".env.example", "app/.env.sample", ".env.local.template", ".env.dist", "id_rsa.pub",
        "src/environment.py",
        "src/model/credentials/store.py", "credentials.py", ".environment", "docs/env.md", ".env/lib/site.py",
        "keys.py",
        "src/app.keyboard", "package.json", ".dockerignore", "ssh/config", "aws.py",
    ],
)  # fmt: skip
def test_files_that_hold_none(path: str) -> None:
    assert not is_secret(path)


@pytest.mark.parametrize(
    "path",
    [
        ".git", ".git/config", "sub/.git/hooks/pre-commit", ".GIT/hooks/x", ".Git", "git~1/config", "GIT~1/hooks/x",
        ".git./config", ".git /config", ".g\u200cit/config", ".git::$INDEX_ALLOCATION/config", "codeloop.json",
        "a/codeloop.jsonc", "OpenCode.json", ".codeloop/agent/x.md", ".codeloop/codeloop.json", ".opencode/x",
        ".bashrc",
        "home/u/.profile", ".ssh/authorized_keys", ".config/autostart/x.desktop", ".config/systemd/user/x.service",
        ".gitconfig", ".config/git/config", "Library/LaunchAgents/x.plist", ".local/bin/git", "/etc/cron.d/x",
        "/var/spool/cron/root", ".local/state/codeloop/trust.json", ".config/codeloop/codeloop.json",
    ],
)  # fmt: skip
def test_files_that_decide_what_runs(path: str) -> None:
    assert is_protected(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/git/x.py",
        ".gitignore",
        ".github/workflows/ci.yml",
        "a.git",
        "codeloop/x.py",
        "docs/codeloop.json.md",
        "bin/x",
    ],
)
def test_files_that_do_not(path: str) -> None:
    assert not is_protected(path)


@pytest.mark.parametrize(
    "path",
    [
        "AGENTS.md", "sub/CLAUDE.md", "GEMINI.md", ".cursorrules", ".vscode/tasks.json", ".husky/pre-commit", ".npmrc",
        ".vscode/settings.json", ".vscode/launch.json", ".vscode/mcp.json", "a/x.code-workspace", ".mcp.json",
        ".cursor/mcp.json", ".cursor/rules/x.mdc", ".claude/settings.json", ".claude/settings.local.json",
        ".claude/agents/x.md", ".gemini/settings.json", ".codex/config.toml", ".zed/settings.json", ".zed/tasks.json",
        "mise.toml", ".mise.toml", ".config/mise/config.toml", ".exrc", "sub/.nvim.lua", ".nvimrc", ".vimrc", ".envrc",
        ".github/workflows/ci.yml", ".github/actions/x/action.yml", ".gitlab-ci.yml", ".circleci/config.yml",
        ".idea/workspace.xml", ".devcontainer/devcontainer.json", ".devcontainer.json", "lefthook.yaml",
        ".pre-commit-config.yaml", ".helix/config.toml", ".dir-locals.el", ".MCP.json", ".VSCode/Settings.json",
    ],
)  # fmt: skip
def test_files_by_which_something_runs_later(path: str) -> None:
    assert needs_confirmation(path)
    assert not is_protected(path)


def test_plain_paths_stay_as_they_are() -> None:
    assert fold_path("src/app.py") == "src/app.py"
    assert fold_path("a/..") == "a/.."


def test_what_is_opened_with_a_project_is_guarded_by_the_edit_tools_too() -> None:
    assert all(needs_confirmation(path) or is_protected(path) for path in OPENED_PATHS)
    assert is_opened(".vscode/settings.json")
    assert is_opened(".devcontainer/x/y")
    assert not is_opened("sub/.vscode/settings.json")
    assert not is_opened(".vscode/extensions.json")
