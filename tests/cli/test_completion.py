"""Completion in a shell: names of sessions, agents, models and commands,
and never a word about what went wrong.
"""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.schema.permission import PermissionRequest
from codeloop.store.store import Store
from tests.cli.program import HANGING, Desk, result, serving, steps
from tests.support.answers import Answer

PROGRAM = Path(sys.executable).parent


def completed(desk: Desk, line: str) -> tuple[list[str], str]:
    """Complete a line in bash; return what is offered,
    and what was written to the terminal meanwhile.
    """
    script = f"""
        source <(codeloop completion bash)
        COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}
        COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
        _codeloop_completion codeloop
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    options = desk.options()
    options["env"]["PATH"] = f"{PROGRAM}:{options['env']['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        **options,
        capture_output=True,
        text=True,
        timeout=HANGING,
        check=True,
    )
    return done.stdout.split(), done.stderr


@pytest.mark.slow
def test_bash_is_offered_commands_options_and_names(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(
            server,
            command={"greet": {"template": "Greet."}},
            agent={"reviewer": {"mode": "primary"}},
        )
        first, second = (
            str(result(desk.run("run", "--format", "json", "--title", title, "go"))["sessionID"])
            for title in ("One", "Two")
        )
    slug = json.loads(desk.run("session", "show", first, "--json").stdout)["info"]["slug"]
    wanted = {
        "codeloop sess": ["session"],
        "codeloop session arch": ["archive"],
        "codeloop run --cont": ["--continue"],
        "codeloop session show ": [second, first],
        f"codeloop undo --session {first[:-2]}": [first],
        f"codeloop run -s {slug}": [slug],
        "codeloop session delete x ses_": [second, first],
        "codeloop run --agent rev": ["reviewer"],
        "codeloop run --model loc": ["local/m"],
        "codeloop run --command gr": ["greet"],
        "codeloop completion ": ["bash", "zsh", "fish"],
    }
    for line, names in wanted.items():
        found, errors = completed(desk, line)
        # Of two thousand names, two may have one.
        assert ([*dict.fromkeys(found)], errors) == (names, ""), line
    assert desk.run("session", "archive", first).returncode == 0
    assert completed(desk, "codeloop session show ")[0] == [second]
    assert completed(desk, "codeloop session unarchive ")[0] == [first]


@pytest.mark.slow
def test_a_model_with_a_colon_is_completed_from_the_colon_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    models = {"qwen:8b": {"tool_call": True}, "qwen:14b": {"tool_call": True}}
    desk.configure(
        provider={"local": {"options": {"baseURL": "http://127.0.0.1:9/v1"}, "models": models}}
    )
    assert completed(desk, "codeloop run -m local/qwen:1") == (["14b"], "")


HOSTILE = ["$(touch pwned)", "`touch pwned`", "a;touch pwned", "a b", "-x", "*", "é\x1b[2J"]


@pytest.mark.slow
def test_names_that_a_shell_would_act_on_are_not_offered(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    agents = {name: {"mode": "primary", "description": "x\ny\x1b[2J"} for name in [*HOSTILE, "zed"]}
    desk.configure(agent=agents, command={name: {"template": "x"} for name in HOSTILE})
    names, errors = completed(desk, "codeloop run --agent ")
    assert "zed" in names
    assert set(names) & {word for name in HOSTILE for word in name.split()} == set()
    assert errors == ""
    assert completed(desk, "codeloop run --command a") == ([], "")
    assert not (desk.work / "pwned").exists()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["{", "[]", '{"agent": 3}', "\x00\xff", "[" * 100_000])
def test_nothing_is_said_when_the_configuration_is_broken(tmp_path: Path, text: str) -> None:
    desk = Desk(tmp_path)
    (desk.work / "codeloop.json").write_text(text, encoding="latin-1")
    for line in ("codeloop run --agent b", "codeloop run -m x", "codeloop session show "):
        _, errors = completed(desk, line)
        assert errors == "", line


@pytest.mark.slow
def test_a_store_that_is_broken_offers_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        desk.run("run", "--title", "One", "go")
    desk.database().write_bytes(b"no database")
    assert completed(desk, "codeloop session show ") == ([], "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_scripts_and_ask_for_names(tmp_path: Path, shell: str) -> None:
    desk = Desk(tmp_path)
    script = desk.run("completion", shell).stdout
    assert "2>/dev/null" in script
    found = shutil.which(shell)
    if found is not None:
        done = subprocess.run(
            [found, "-n"],
            input=script,
            capture_output=True,
            text=True,
            timeout=HANGING,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
    words = {"COMP_WORDS": "codeloop run --agent bu", "COMP_CWORD": "3" if shell == "zsh" else "bu"}
    asked = desk.run(_CODELOOP_COMPLETE=f"{shell}_complete", **words)
    assert asked.returncode == 0
    assert "build" in asked.stdout


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_shows_a_help_text_with_its_commas(tmp_path: Path) -> None:
    options = Desk(tmp_path).options()
    options["env"]["PATH"] = f"{PROGRAM}:{options['env']['PATH']}"
    asked = 'codeloop completion fish | source; complete -C "codeloop --trust"'
    done = subprocess.run(
        ["fish", "-c", asked],
        **options,
        capture_output=True,
        text=True,
        timeout=HANGING,
        check=True,
    )
    assert done.stdout == "--trust\tTrust this directory's configuration, for this run only.\n"


def test_names_of_sessions_are_read_from_the_store_alone(tmp_path: Path) -> None:
    options = Desk(tmp_path).options()
    line = "codeloop session show "
    options["env"] |= {
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_CODELOOP_COMPLETE": "bash_complete",
    }
    command = [sys.executable, "-X", "importtime", "-m", "codeloop"]
    done = subprocess.run(command, **options, capture_output=True, text=True, check=True)
    assert "codeloop.store.queries" in done.stderr
    assert "codeloop.app" not in done.stderr


@pytest.mark.slow
def test_what_is_always_allowed_is_offered_to_revoke(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        session_id = str(
            result(desk.run("run", "--format", "json", "--title", "One", "go"))["sessionID"]
        )
    store = Store(desk.database())
    store.permissions.store_always_answer(
        PermissionRequest(
            id="per_1",
            session_id=session_id,
            permission="bash",
            patterns=["ls"],
            metadata={},
            always=["ls *"],
        )
    )
    store.close()
    assert completed(desk, "codeloop permission revoke ") == (["per_1"], "")
