"""`codeloop models` as a person runs it."""

import json
from pathlib import Path

import pytest

from tests.cli.program import KEY, Desk, codeloop, serving
from tests.support.answers import Answer

UNSPOKEN = "protocol not spoken yet (@saladtechnologies-oss/ai-sdk-provider)"


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
    done = codeloop(tmp_path, "models", "openai", "--json", "--all")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(row["ref"].startswith("openai/") for row in rows)
    assert all((row["usable"], row["reason"]) == (False, "no key") for row in rows)
    assert any(row["context"] > 100_000 and row["input_price"] > 0 for row in rows)


def test_all_lists_every_provider(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "models", "--all")
    assert done.returncode == 0
    assert (
        len(
            {
                line.split()[-1 if line.startswith("*") else 0].split("/")[0]
                for line in done.stdout.splitlines()
            }
        )
        > 100
    )


def test_an_unknown_provider_is_an_error_of_the_provider(tmp_path: Path) -> None:
    done = codeloop(tmp_path, "models", "antropic")
    assert done.returncode == 3
    assert "`anthropic`" in done.stderr


def test_refresh_without_a_network_says_so_and_changes_nothing(tmp_path: Path) -> None:
    done = codeloop(
        tmp_path, "models", "--refresh", CODELOOP_MODELS_URL="http://127.0.0.1:9/api.json"
    )
    assert done.returncode == 1
    assert "can't be reached" in done.stderr
    assert not (tmp_path / "home" / "cache" / "models.bin").exists()


def test_models_of_the_configuration_are_listed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(text="Hello.")]) as server:
        row = {"options": {"baseURL": server.url}, "models": {"m": {"limit": {"context": 8000}}}}
        desk.configure(provider={"mine": row})
        done = desk.run("models")
    assert done.returncode == 0, done.stderr
    assert "* mine/m" in " ".join(done.stdout.split())
    assert "8.0k" in done.stdout


@pytest.mark.slow
def test_only_what_can_be_used_here_is_listed_and_what_has_a_key_but_can_t_be_is_named(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, {"SALAD_CLOUD_API_KEY": KEY, "GROQ_API_KEY": KEY})
    down = {"options": {"baseURL": "http://127.0.0.1:9/v1"}, "models": {"m": {}}}
    (desk.work / "codeloop.json").write_text(json.dumps({"provider": {"theirs": down}}))
    with serving([Answer(text="Hello.")]) as server:
        mine = {
            "options": {"baseURL": server.url},
            "models": {"m": {}, "off": {"disabled": True}, "g": {"provider": {}}},
        }
        desk.configure(provider={"mine": mine, "down": down}, disabled_providers=["groq"])
        done, everything = desk.run("models"), desk.run("models", "--all", "--json")
    listed = [line.replace("*", " ").split()[0] for line in done.stdout.splitlines()[1:]]
    assert sorted(
        name
        for name in listed
        if name.split("/")[0] in {"mine", "down", "theirs", "salad-cloud", "groq"}
    ) == [
        "mine/g",
        "mine/m",
    ]
    assert "down is not listed: local server not answering" in done.stderr
    assert (
        f"salad-cloud is not listed: {UNSPOKEN}, although SALAD_CLOUD_API_KEY is set" in done.stderr
    )
    assert (
        "groq is not listed: disabled by configuration, although GROQ_API_KEY is set" in done.stderr
    )
    assert KEY not in done.stdout + done.stderr
    reasons = {row["ref"]: row["reason"] for row in json.loads(everything.stdout)}
    assert (reasons["mine/m"], reasons["mine/off"]) == ("", "disabled by configuration")
    assert reasons["down/m"] == "local server not answering"
    assert reasons["theirs/m"].startswith("untrusted")
    found = {ref.partition("/")[0]: reason for ref, reason in reasons.items()}
    assert found["salad-cloud"] == UNSPOKEN
    assert (found["groq"], found["openai"], found["lmstudio"]) == (
        "disabled by configuration",
        "no key",
        "local server not answering",
    )


@pytest.mark.parametrize(
    ("provider", "reason"),
    [
        ("openai", "no key. Store one: `codeloop auth login openai`"),
        ("salad-cloud", "protocol not spoken yet"),
    ],
)
def test_a_provider_that_can_t_be_used_is_refused_with_the_reason(
    tmp_path: Path, provider: str, reason: str
) -> None:
    done = codeloop(tmp_path, "models", provider)
    assert (done.returncode, done.stdout) == (3, "")
    assert reason in done.stderr
    assert f"codeloop models {provider} --all" in done.stderr


def test_a_key_whose_protocol_is_not_spoken_is_named_as_that(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    done = desk.run("auth", "login", "salad-cloud", "--key-stdin", stdin=KEY)
    assert done.returncode == 3
    assert "does not support the protocol of SaladCloud AI Gateway yet" in done.stderr
    file = desk.home / "data" / "auth.json"
    assert not file.exists()
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"salad-cloud": {"type": "api", "key": KEY}}))
    (row,) = [
        line
        for line in desk.run("auth", "list").stdout.splitlines()
        if line.startswith("salad-cloud")
    ]
    assert row.endswith(UNSPOKEN)
    done = desk.run("run", "-m", "salad-cloud/qwen3.6-35b-a3b", "hello", SALAD_CLOUD_API_KEY=KEY)
    assert done.returncode == 3
    assert "does not speak yet" in done.stderr
    assert "The key of SALAD_CLOUD_API_KEY does not help." in done.stderr
    assert KEY not in done.stdout + done.stderr
