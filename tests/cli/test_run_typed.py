"""What `codeloop run` makes of its words and of its recordings: as a conversation does,
and never from foreign text.
"""

import base64
import json
from pathlib import Path

import pytest

from tests.cli.program import Desk, bash, call, serving, steps
from tests.support.answers import Answer

HELLO = Answer(text="Hello.")
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def sent(desk: Desk, *words: str, stdin: str = "") -> tuple[str, str, int]:
    """Return what the model is sent as the prompt, what is said on stderr, and the exit code."""
    with serving(steps(HELLO)) as server:
        desk.use(
            server,
            command={
                "review": {"template": "Review it.\n!`cat note`"},
                "say": {"template": "Say $1, then $2."},
            },
        )
        done = desk.run("run", "--auto", "--title", "T", *words, stdin=stdin)
        asked = str(server.requests[0].json["messages"][1:]) if server.requests else ""
    return asked, done.stderr, done.returncode


@pytest.mark.slow
def test_a_command_and_a_mention_do_what_they_do_in_a_conversation(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "calc.py").write_text("SECRET = 1\n")
    (desk.work / "note").write_text("see @calc.py\n")
    assert "SECRET = 1" in sent(desk, "see @calc.py")[0]
    assert "AGENTS.md" in sent(desk, "/init")[0]
    assert "/etc/hosts is broken" in sent(desk, "/etc/hosts is broken")[0]
    asked = sent(desk, "/review")[0]
    assert "see @calc.py" in asked
    assert "SECRET" not in asked, "what a shell line printed was looked through for files"
    asked = sent(desk, stdin="/init and see @calc.py")[0]
    assert "/init and see @calc.py" in asked
    assert "SECRET" not in asked


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_command_gets_its_words_as_arguments_and_stdin_as_a_file(
    tmp_path: Path, form: str
) -> None:
    words = ("--output-format", form, "--command", "say", "-", "two words", "three")
    asked, _, code = sent(Desk(tmp_path), *words, stdin="PIPED TEXT")
    assert (code, "Say two words, then three." in asked, "PIPED TEXT" in asked) == (0, True, True)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["/nonsense"], "Unknown command: /nonsense"),
        (["/undo"], "codeloop undo"),
        (["/compact"], "--continue or --session"),
        (["--command", "compact"], "--continue or --session"),
        (["/compct"], "Unknown command: /compct. Did you mean `/compact`?"),
        (["--command", "reviwe"], "not found: reviwe. Did you mean `review`? Available"),
        (["--command", "zebra"], "not found: zebra. Available"),
        (["--agent", "bulid", "hi"], "not found: bulid. Did you mean `build`? Available"),
        (["--agent", "zebra", "hi"], "not found: zebra. Available"),
    ],
)
def test_what_can_not_be_done_is_refused_before_anything_is_sent(
    tmp_path: Path, words: list[str], hint: str
) -> None:
    desk = Desk(tmp_path)
    asked, said, code = sent(desk, *words)
    assert asked == ""
    assert code == (1 if "not found" in hint and "--command" in words else 2)
    assert hint in said
    assert "ses_" not in desk.run("session", "list").stdout


@pytest.mark.slow
def test_a_recording_is_replaced_only_when_that_is_asked_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    tape = desk.work / "tape.jsonl"
    assert sent(desk, "--record", "tape.jsonl", "hello")[2] == 0
    first = tape.read_bytes()
    for words in (
        ["--record", "tape.jsonl"],
        ["--record", "tape.jsonl", "--replay", "tape.jsonl"],
        ["--force"],
    ):
        asked, said, code = sent(desk, *words, "hello")
        assert (asked, code, tape.read_bytes()) == ("", 2, first), said
    assert sent(desk, "--record", "tape.jsonl", "--force", "goodbye")[2] == 0
    assert tape.read_bytes() != first
    assert [path.name for path in desk.work.iterdir()] == ["tape.jsonl"]


@pytest.mark.slow
def test_a_session_or_configured_agent_is_suggested_when_it_is_near_in_spelling(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    assert sent(desk, "--title", "Mend the parser", "hello")[2] == 0
    made = json.loads(desk.run("session", "list", "--json").stdout)[0]
    mistyped = made["id"][:-1] + ("x" if made["id"][-1] == "y" else "y")
    for wanted in (mistyped, made["slug"] + "x", "mend teh parser"):
        said = desk.run("run", "--session", wanted, "hello").stderr
        assert f"no session {wanted} in this project. Did you mean `{made['id']}`?" in said
    assert "Did you mean" not in desk.run("run", "--session", "zzzzzzzz", "hello").stderr
    with serving(steps(HELLO)) as server:
        desk.use(server, default_agent="bulid")
        done = desk.run("run", "hello")
    assert "Agent not found: bulid. Did you mean `build`?" in done.stderr
    assert server.requests == []


def test_a_mention_is_an_agent_an_image_or_said_to_be_no_file(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "src").mkdir()
    (desk.work / "dot.png").write_bytes(PIXEL)
    asked, said, code = sent(desk, "ask @explore about @dot.png")
    assert ("subagent" in asked, "data:image/png;base64," in asked) == (True, True), asked
    assert (code, "codeloop: @" in said) == (0, False)
    asked, said, code = sent(desk, "see @src and @gone.py, @later")
    assert (code, "see @src and @gone.py, @later" in asked) == (0, True)
    assert "src/, which has" in asked
    assert "codeloop: @gone.py does not exist and was not attached.\n" in said
    assert "@later is" not in said


@pytest.mark.slow
def test_a_replay_says_what_of_the_recording_does_not_fit(tmp_path: Path) -> None:
    desk, elsewhere = Desk(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder in (desk.work, elsewhere):
        (folder / "calc.py").write_text("a = 1\n")
    with serving(steps(call("read", filePath="calc.py"), HELLO)) as server:
        desk.use(server)
        assert (
            desk.run("run", "--record", "t.jsonl", "--title", "T", "see @calc.py").returncode == 0
        )
    fitting = ["run", "--replay", "t.jsonl", "see @calc.py"]
    tape = desk.work / "t.jsonl"
    for words in (fitting, [*fitting, "--dir", str(elsewhere)]):
        done = desk.run(*words, "--format", "json")
        assert (done.returncode, done.stderr) == (0, ""), words
    done = desk.run("run", "--replay", "t.jsonl", "-c", "other")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "codeloop: The recording t.jsonl was made for another prompt" in done.stderr
    lines = tape.read_text().splitlines(keepends=True)
    tape.write_text("".join([*lines, lines[-1]]))
    done = desk.run(*fitting)
    assert done.returncode == 0
    assert "codeloop: The recording t.jsonl has 1 answer more: this run asked for 2." in done.stderr
    tape.write_text(lines[0])
    done = desk.run(*fitting)
    assert done.returncode == 1
    assert "The recording t.jsonl ends here" in done.stderr


@pytest.mark.slow
def test_a_recording_that_can_not_be_written_to_its_end_gets_no_name(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("ln -sf /dev/full t.jsonl.part"), HELLO)) as server:
        desk.use(server)
        done = desk.run("run", "--auto", "--record", "t.jsonl", "--title", "T", "go")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "t.jsonl.part is incomplete: No space left on device." in done.stderr
    assert not (desk.work / "t.jsonl").exists()


SECRET = "-----BEGIN KEY----- 0123"


@pytest.fixture
def hidden(tmp_path: Path) -> Desk:
    """A project with a secret in it, and one beside it."""
    desk = Desk(tmp_path)
    (desk.work / ".env").write_text(f"KEY={SECRET}\n")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_rsa").write_text(SECRET)
    (desk.work / "link.md").symlink_to(tmp_path / ".ssh/id_rsa")
    return desk


@pytest.mark.parametrize("name", [".env", "~/.ssh/id_rsa", "../.ssh/id_rsa", "link.md"])
@pytest.mark.parametrize("template", [None, "See $ARGUMENTS.", "See @$1", "See @{name}"])
def test_a_mention_of_a_secret_or_of_what_lies_outside_is_asked_about(
    hidden: Desk, name: str, template: str | None
) -> None:
    look = {"look": {"template": (template or "unused").replace("{name}", name)}}
    words = f"see @{name}" if template is None else "/look"
    words += {"See $ARGUMENTS.": f" @{name}", "See @$1": f" {name}"}.get(template or "", "")
    with serving(steps(HELLO)) as server:
        hidden.use(server, command=look)
        done = hidden.run("run", "--title", "T", words)
        asked = str(server.requests[0].json["messages"][1:])
        assert SECRET not in asked
        assert "is not attached" in asked
        assert done.returncode == 5, done.stderr
        assert "Denied, because nobody can be asked" in done.stderr
        hidden.run("run", "--auto", "--title", "T", words)
        assert SECRET in str(server.requests[-1].json["messages"][1:]), "a yes attaches it"


@pytest.mark.slow
def test_mentions_are_looked_for_in_nothing_that_was_expanded(hidden: Desk) -> None:
    """The body of a commit, what a line prints, what a file holds,
    a task that a model writes: none attaches a file.
    """
    hidden.git("init", "-q")
    hidden.git("commit", "-q", "--allow-empty", "-m", "Fix\n\nsee @~/.ssh/id_rsa and @.env")
    (hidden.work / "note").write_text("see @.env and !`touch ran`\n")
    template = "What is new?\n!`git log -1 --format=%B`\n!`cat note`\nAnswer."
    task = call(
        "task", description="Look", prompt="see @.env and @~/.ssh/id_rsa", subagent_type="general"
    )
    with serving(steps(task, HELLO)) as server:
        hidden.use(server, command={"news": {"template": template}}, permission={"*": "allow"})
        done = hidden.run("run", "--auto", "--title", "T", "/news")
        assert done.returncode == 0, done.stderr
        assert "see @~/.ssh/id_rsa" in str(server.requests[0].body)
        hidden.run("run", "--auto", "--title", "T", "see @note", stdin="")
        hidden.run("run", "--auto", "--title", "T", "read this", "-", stdin="see @.env")
        assert all(SECRET.encode() not in request.body for request in server.requests)
    assert not (hidden.work / "ran").exists()


def test_a_file_that_a_person_attaches_needs_no_question(hidden: Desk) -> None:
    asked, _, code = sent(hidden, "--file", "../.ssh/id_rsa", "what is this?")
    assert (code, SECRET in asked) == (0, True)
