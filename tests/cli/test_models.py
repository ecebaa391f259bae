"""`codeloop models` as a person runs it."""

import json
from pathlib import Path

from tests.cli.program import codeloop


def test_without_any_key_three_lines_say_how_to_go_on(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "models")
    assert done.returncode in {0, 3}, "0 where a local model server happens to run"
    if done.returncode == 3:
        assert "codeloop auth login" in done.stderr
        assert len(done.stderr.splitlines()) == 3


def test_a_key_in_the_environment_lists_that_provider_with_its_default(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "models", ANTHROPIC_API_KEY="sk-ant-0123456789abcdef")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if " anthropic/" in line]
    assert len(rows) > 3
    assert sum(line.startswith("*") for line in rows) == 1
    assert not any(" openai/" in line for line in done.stdout.splitlines())
    assert "sk-ant" not in done.stdout + done.stderr


def test_json_has_limits_and_prices_as_numbers(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "models", "openai", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(row["ref"].startswith("openai/") for row in rows)
    assert any(row["context"] > 100_000 and row["input_price"] > 0 for row in rows)


def test_all_lists_every_provider(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "models", "--all")
    assert done.returncode == 0
    assert (
        len({line.split()[-1 if line.startswith("*") else 0].split("/")[0] for line in done.stdout.splitlines()}) > 100
    )


def test_an_unknown_provider_is_an_error_of_the_provider(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "models", "antropic")
    assert done.returncode == 3
    assert "`anthropic`" in done.stderr


def test_refresh_without_a_network_says_so_and_changes_nothing(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "models", "--refresh", CODELOOP_MODELS_URL="http://127.0.0.1:9/api.json")
    assert done.returncode == 1
    assert "can't be reached" in done.stderr
    assert not (tmp_path / "home" / "cache" / "models.bin").exists()


def test_models_of_the_configuration_are_listed(tmp_path: Path) -> None:
    config = tmp_path / "home" / "config" / "codeloop.json"
    config.parent.mkdir(parents=True)
    row = {"options": {"baseURL": "http://127.0.0.1:9/v1"}, "models": {"m": {"limit": {"context": 8000}}}}
    config.write_text(json.dumps({"provider": {"mine": row}}))
    done = codeloop(tmp_path, "models")
    assert done.returncode == 0, done.stderr
    assert "* mine/m" in " ".join(done.stdout.split())
    assert "8.0k" in done.stdout
