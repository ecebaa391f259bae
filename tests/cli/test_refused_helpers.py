"""Hooks, own tools and formatters in their sandboxes: what they name is there, what they are
refused is named with the command that allows it.
"""

from pathlib import Path

import msgspec
import pytest

from tests.cli.program import Desk, call, result, serving, steps
from tests.cli.test_hooks import results, row
from tests.support.answers import Answer
from tests.support.sandbox_support import has_sandbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here"),
]
DONE = Answer(text="Finished.")
# It opens a path that stands nowhere.
READING = "import os; print(open(os.environ['HOME'] + '/no' + 'tes/n.txt').read())"
TOOL = '''
import os


def peek() -> str:
    """Read a note."""
    return open(os.environ["HOME"] + "/no" + "tes/n.txt").read()
'''


def desk_of(tmp_path: Path) -> Desk:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "n.txt").write_text("a note")
    return Desk(tmp_path)


def test_what_a_hook_was_refused_is_named_and_allowed(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "hook.sh"
    # A script of the home, with a link to it: both ends are shown.
    script.write_text(f'#!/bin/sh\nexec python3 -c "{READING}"\n')
    script.chmod(0o755)
    (tmp_path / "link").symlink_to(script)
    with serving(steps(DONE, DONE)) as server:
        desk.use(server, hooks={"UserPromptSubmit": [row("~/link")]})
        refused = desk.run("run", "go on")
        assert "codeloop plugin allow --read ~/notes/n.txt" in refused.stderr
        assert "a note" not in str(server.requests[-1].json)
        listed = desk.run("plugin", "list")
        assert "codeloop plugin allow --read ~/notes/n.txt" in listed.stdout
        allowed = desk.run("plugin", "allow", "--read", str(tmp_path / "notes"))
        assert allowed.stdout.startswith("Written to "), allowed.stderr
        again = desk.run("run", "go on")
        assert "sandbox refused" not in again.stderr
        assert "a note" in str(server.requests[-1].json)
        assert "sandbox refused" not in desk.run("plugin", "list").stdout


def test_what_a_hook_wrote_and_nobody_sees_is_named_once(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    with serving(steps(DONE)) as server:
        # The home is taken from a variable: nothing names the file.
        line = "python3 -c \"import os; h = os.environ['HOME']; open(h + '/ho' + 'ok.log', 'a').write('x')\""
        desk.use(server, hooks={"UserPromptSubmit": [row(line)]})
        lost = desk.run("run", "go on")
        assert "codeloop plugin allow --write ~/hook.log" in lost.stderr
        assert "plugin allow" not in desk.run("run", "go on").stderr
        assert "codeloop plugin allow --write ~/hook.log" in desk.run("plugin", "list").stdout
        assert desk.run("plugin", "allow", "--write", "~/hook.log").returncode == 0
        assert "plugin allow" not in desk.run("run", "go on").stderr
        assert (tmp_path / "hook.log").exists()


def test_what_an_own_tool_was_refused_is_named(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    file = desk.home / "config" / "tool" / "peek.py"
    file.parent.mkdir(parents=True)
    file.write_text(TOOL)
    with serving(steps(call("peek"), DONE)) as server:
        desk.use(server, permission={"peek": "allow"})
        assert result(desk.run("run", "--format", "json", "peek"))["exitCode"] == 0
        said = results(server)[0]
    assert "FileNotFoundError" in said
    assert "codeloop plugin allow --read ~/notes/n.txt" in said


def test_a_formatter_of_the_home_runs(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    program = tmp_path / "tools" / "fmt" / "fmt.py"
    program.parent.mkdir(parents=True)
    (program.parent / "words.py").write_text("WORD = 'formatted'\n")
    program.write_text("import sys, words\nopen(sys.argv[1], 'w').write(words.WORD)\n")
    command = ["python3", str(program), "$FILE"]
    with serving(steps(call("write", filePath="a.txt", content="one"), DONE)) as server:
        desk.use(
            server,
            formatter={"mine": {"command": command, "extensions": [".txt"]}},
            permission={"edit": "allow"},
        )
        assert desk.run("trust").returncode == 0
        done = desk.run("run", "--format", "json", "write")
        assert result(done)["exitCode"] == 0
        assert (desk.work / "a.txt").read_text() == "formatted", results(server)


def test_what_a_formatter_was_refused_is_named_and_allowed(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    program = tmp_path / "tools" / "fmt" / "fmt.py"
    program.parent.mkdir(parents=True)
    program.write_text(f"import sys; open(sys.argv[1], 'w').write('formatted')\n{READING}\n")
    command = ["python3", str(program), "$FILE"]
    with serving(steps(call("write", filePath="a.txt", content="one"), DONE)) as server:
        desk.use(
            server,
            formatter={"mine": {"command": command, "extensions": [".txt"]}},
            permission={"edit": "allow"},
        )
        assert desk.run("trust").returncode == 0
        desk.run("run", "write")
        assert "codeloop formatter allow mine --read ~/notes/n.txt" in results(server)[-1]
        assert (desk.work / "a.txt").read_text() == "one"
        (desk.work / "a.txt").unlink()
        allowed = desk.run("formatter", "allow", "mine", "--read", str(tmp_path / "notes/n.txt"))
        assert allowed.returncode == 0, allowed.stderr
        desk.run("run", "write")
        assert (desk.work / "a.txt").read_text() == "formatted", results(server)


def test_what_a_language_server_was_refused_is_named_and_allowed(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    program = tmp_path / "tools" / "l" / "srv.py"
    program.parent.mkdir(parents=True)
    program.write_text(READING)
    with serving(steps(DONE)) as server:
        desk.use(server, lsp={"mine": {"command": ["python3", str(program)], "extensions": [".x"]}})
        desk.run("trust")
        listed = desk.run("lsp", "list")
        assert "codeloop lsp allow mine --read ~/notes/n.txt" in listed.stdout
        assert desk.run("lsp", "allow", "mine", "--read", "~/notes/n.txt").returncode == 0
        again = desk.run("lsp", "list")
        assert "can't start" in again.stdout
        assert "sandbox refused" not in again.stdout


def test_what_a_hook_of_a_project_was_refused_is_named_and_allowed(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    (desk.work / "hook.py").write_text(READING)
    hooks = {"UserPromptSubmit": [row("python3 hook.py")]}
    (desk.work / "codeloop.json").write_text(msgspec.json.encode({"hooks": hooks}).decode())
    with serving(steps(DONE, DONE)) as server:
        desk.use(server)
        assert desk.run("trust").returncode == 0
        refused = desk.run("run", "go on")
        assert "codeloop plugin allow --project --read ~/notes/n.txt" in refused.stderr
        allowed = desk.run("plugin", "allow", "--project", "--read", "~/notes/n.txt")
        assert allowed.returncode == 0, allowed.stderr
        desk.run("run", "go on")
        assert "a note" in str(server.requests[-1].json)


def test_what_only_says_what_a_formatter_may_does_not_run_it(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    with serving(steps(call("write", filePath="a.py", content="x  =  1\n"), DONE)) as server:
        desk.use(server, permission={"edit": "allow"})
        desk.run("trust")
        assert desk.run("formatter", "allow", "ruff", "--read", "~/notes").returncode == 0
        desk.run("run", "write")
        assert (desk.work / "a.py").read_text() == "x  =  1\n", results(server)
