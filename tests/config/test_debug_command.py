"""`codeloop debug`: the effective configuration, where it comes from, folders and limits."""

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from codeloop.cli.commands.access.trust import trust
from codeloop.cli.commands.examine.debug import debug
from codeloop.schema.bounds.all_limits import list_limits


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    for name in [name for name in os.environ if name.startswith(("CODELOOP", "OPENCODE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CODELOOP_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "config").mkdir(parents=True)
    return tmp_path / "home"


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(debug, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_config_is_the_effective_one_as_json(home: Path) -> None:
    (home / "config" / "codeloop.json").write_text(
        '{"model": "a/b", "permission": {"bash": "ask"}}'
    )
    shown = json.loads(run("config").stdout)
    assert shown["model"] == "a/b"
    assert shown["permission"] == [{"permission": "bash", "pattern": "*", "action": "ask"}]
    assert shown["snapshot"] is True


def test_secrets_are_masked_in_both_forms(home: Path) -> None:
    options = {
        "apiKey": "s3cret",
        "baseURL": "https://me:s3cret@host/v1",
        "headers": {"Authorization": "Bearer s3cret"},
    }
    server = {
        "type": "remote",
        "environment": {"GITHUB_TOKEN": "s3cret"},
        "tokens": ["s3cret"],
        "limit": 5,
    }
    text = json.dumps(
        {"provider": {"x": {"options": options, "env": ["X_API_KEY"]}}, "mcp": {"m": server}}
    )
    (home / "config" / "codeloop.json").write_text(text)
    whole, table = run("config"), run("config", "--provenance")
    for output in (whole.output, table.output):
        assert "s3cret" not in output
        assert "https://***@host/v1" in output
        assert "X_API_KEY" in output
    assert json.loads(whole.stdout)["mcp"]["m"]["limit"] == 5


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/v1?key=s3cret&v=s3cret", "https://host/v1?key=***&v=***"),
        ("https://host/v1?s3cret", "https://host/v1?***"),
        ("https://host/v1#token=s3cret", "https://host/v1#token=***"),
        ("https://s3cret@host/v1?key=s3cret", "https://***@host/v1?key=***"),
    ],
)
def test_a_key_in_the_query_of_an_address_is_masked(home: Path, url: str, shown: str) -> None:
    text = json.dumps({"provider": {"x": {"options": {"baseURL": url}}}})
    (home / "config" / "codeloop.json").write_text(text)
    for output in (run("config").output, run("config", "--provenance").output):
        assert "s3cret" not in output
        assert shown in output


def test_what_a_terminal_would_act_on_is_escaped(home: Path) -> None:
    (home / "config" / "codeloop.json").write_text(
        '{"username": "\\u001b[31m\\u202e\\u009b\\ud83d\\ude00é"}'
    )
    for output in (run("config").output, run("config", "--provenance").output):
        assert not any(char in output for char in "\x1b\u202e\x9b")
    assert json.loads(run("config").stdout)["username"] == "\x1b[31m\u202e\x9b😀é"


def test_provenance_names_layer_file_and_line_of_each_value(home: Path) -> None:
    file = home / "config" / "codeloop.json"
    file.write_text('{\n "model": "a/b",\n "permission": {"bash":\n  "ask"}}')
    project = Path("codeloop.json").absolute()
    project.write_text('{"permission": {"edit": "deny"},\n "shell": "x"}')
    result = run("config", "--provenance")
    lines = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    assert lines["model"].endswith(f"global ({file}:2:11)")
    assert re.fullmatch(rf"permission.0. +bash .: ask +global .{file}:4:3.", lines["permission[0]"])
    assert lines["restrictions[0]"].endswith(f"project ({project}:1:25)")
    assert lines["snapshot"].endswith("built-in")
    assert "shell" not in lines
    assert "Ignored: shell" in result.stderr


def test_trust_shows_what_would_hold(home: Path) -> None:
    Path("codeloop.json").write_text('{"shell": "zsh"}')
    assert "shell" not in json.loads(run("config").stdout)
    assert json.loads(run("config", "--trust").stdout)["shell"] == "zsh"
    assert CliRunner().invoke(trust, []).exit_code == 0
    assert json.loads(run("config").stdout)["shell"] == "zsh"


def test_a_further_file_can_be_named(home: Path) -> None:
    Path("more.json").write_text('{"username": "me"}')
    assert json.loads(run("config", "--config", "more.json").stdout)["username"] == "me"


def test_paths_are_listed_in_both_forms(home: Path) -> None:
    shown = json.loads(run("paths", "--json").stdout)
    assert shown["credentials"] == str(home / "data" / "auth.json")
    assert shown["reference"] == str(home / "opencode")
    assert shown["root"] == str(Path.cwd())
    assert shown["project"] == str(home / "data" / "project" / "global")
    assert f"trust        {home}/state/trust.json" in run("paths").stdout
    assert not (home / "data").exists()


def test_every_limit_is_listed_in_both_forms(home: Path) -> None:
    rows = json.loads(run("limits", "--json").stdout)
    assert [row["name"] for row in rows] == [limit.name for limit in list_limits()]
    lines = run("limits").stdout.splitlines()
    assert len(lines) == len(rows) + 1
    assert (
        len({line.index(limit.why) for line, limit in zip(lines[1:], list_limits(), strict=True)})
        == 1
    )
