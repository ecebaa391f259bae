"""`codeloop session`, `stats`, `import` and `run --fork`, as the real program."""

import asyncio
import json
import time
from collections import Counter
from pathlib import Path

import pytest

from codeloop.schema.api.session_inputs import PROMPT_ASYNC, Prompt, TextPartInput
from tests.cli.program import Desk, bash, call, result, serving, steps
from tests.cli.terminal import Terminal
from tests.support import scripted_project
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest
from tests.support.scripted_project import make_answer, open_scripted_project, wait_until


def shown(desk: Desk, *arguments: str) -> str:
    """Run a command that must work, and return its stdout."""
    done = desk.run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(desk: Desk, *flags: str) -> list[dict[str, object]]:
    return json.loads(shown(desk, "session", "list", "--json", *flags))


@pytest.mark.slow
def test_sessions_are_listed_renamed_searched_forked_and_deleted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("echo hi"), Answer(text="It is a zebra."))) as server:
        desk.use(server)
        shown(desk, "run", "--title", "One", "what animal is this?")
        shown(desk, "run", "--continue", "are you sure?")
        line = shown(desk, "session", "list")
        assert "One" in line
        assert "$0.0" in line
        session = line.split()[0]
        assert "Renamed" in shown(desk, "session", "rename", session, "Zoo")
        assert "Zoo" in shown(desk, "session", "list")
        found = shown(desk, "session", "search", "a", "zebra")
        assert session in found
        assert "It is a zebra." in found
        missing = desk.run("session", "search", "giraffe")
        assert (missing.returncode, missing.stdout) == (0, "")
        assert "giraffe" in missing.stderr
        assert "Zoo (fork #1)" in shown(desk, "session", "fork", session, "--at", "2")
        fork = shown(desk, "session", "list").split()[0]
        copied = shown(desk, "session", "show", fork)
        assert "what animal" in copied
        assert "are you sure" not in copied
        wrong = desk.run("session", "fork", session, "--at", "3")
        assert (wrong.returncode, "2 prompts" in wrong.stderr) == (2, True)
        shown(desk, "session", "delete", fork)
        assert [each["id"] for each in listed(desk)] == [session]
        kept = desk.run("session", "delete", "--older-than", "1", "--yes")
        assert (kept.returncode, kept.stderr.strip()) == (0, "No session is that old.")
        assert desk.run("session", "delete", "--older-than", "1", session).returncode == 2
        assert f"Deleted {session}." in shown(desk, "session", "delete", "--older-than", "0", "-y")
        assert listed(desk) == []


@pytest.mark.slow
def test_run_goes_on_with_a_copy(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        shown(desk, "run", "--title", "One", "first")
        shown(desk, "run", "--continue", "second")
        original = listed(desk)[0]["id"]
        forked = result(
            desk.run("run", "--format", "json", "--continue", "--fork", "--at", "2", "other")
        )
        assert forked["sessionID"] != original
        assert [each["title"] for each in listed(desk)] == ["One (fork #1)", "One"]
        document = json.loads(shown(desk, "export", str(forked["sessionID"])))
        said = [p["text"] for m in document["messages"] for p in m["parts"] if p["type"] == "text"]
        assert said == ["first", "Done.", "other", "Done."]
        again = result(
            desk.run(
                "run",
                "--format",
                "json",
                "--session",
                str(original),
                "--fork",
                "--title",
                "Mine",
                "third",
            )
        )
        assert again["exitCode"] == 0
        assert listed(desk)[0]["title"] == "Mine"
        assert "second" in shown(desk, "session", "show", str(original))
        assert "third" not in shown(desk, "session", "show", str(original))


@pytest.mark.parametrize(
    "flags", [("--fork",), ("--at", "1"), ("--continue", "--at", "1"), ("--continue", "--fork")]
)
def test_a_copy_of_nothing_is_a_wrong_call(tmp_path: Path, flags: tuple[str, ...]) -> None:
    done = Desk(tmp_path).run("run", *flags, "hello")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert Desk(tmp_path).run("session", "list").stdout == ""


@pytest.mark.slow
def test_an_export_is_imported_elsewhere_and_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    here, there = Desk(tmp_path / "a"), Desk(tmp_path / "b")
    file = tmp_path / "session.json"
    with serving(steps(bash("echo hi"), Answer(text="Done."))) as server:
        here.use(server)
        there.use(server)
        shown(here, "run", "--title", "One", "hello")
        shown(here, "export", "--output", str(file))
        done = there.run("import", str(file))
        assert (done.returncode, done.stderr) == (0, "")
        assert "with 3 messages: One" in done.stdout
        assert listed(there)[0]["id"] == listed(here)[0]["id"]
        again = there.run("import", "-", stdin=file.read_text())
        assert "copy" in again.stderr
        assert len(listed(there)) == 2
        assert "Done." in shown(there, "run", "--continue", "go on")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is empty"),
        ('{"info": {},\n  "messages": [}', "line 2, column 16"),
        ("[1]", "not a JSON object"),
        ('{"info": {"id": "ses_x"}, "messages": []}', "at $.info"),
        ("[" * 100_000, "nested too deeply"),
        ('{"info":' + "[" * 100_000, "nested too deeply"),
        ("\xff", "not a JSON object"),
    ],
)
def test_a_broken_file_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "broken.json").write_text(text, encoding="latin-1")
    done = Desk(tmp_path).run("import", str(tmp_path / "broken.json"))
    assert done.returncode == 1
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr) < 400


@pytest.mark.slow
def test_sums_are_shown_for_people_and_programs(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert "codeloop stats --all" in desk.run("stats").stderr
    with serving(steps(bash("echo hi"), Answer(text="Done."))) as server:
        desk.use(server)
        before = time.strftime("%Y-%m-%d")
        shown(desk, "run", "--title", "One", "hello")
    after = time.strftime("%Y-%m-%d")
    text = shown(desk, "stats", "--days", "2")  # it may be midnight meanwhile
    assert "local/m" in text
    assert before in text or after in text
    assert str(desk.work)[-40:] in text
    figures = json.loads(shown(desk, "stats", "--json", "--all"))
    assert (
        figures["total"]["sessions"],
        figures["total"]["steps"],
        figures["total"]["toolCalls"],
    ) == (1, 2, 1)
    assert figures["total"]["cost"] == pytest.approx(
        sum(day["figures"]["cost"] for day in figures["days"])
    )


async def test_a_waiting_prompt_is_marked_where_the_session_is_shown(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(scripted_project.make_call("bash", command="sleep 77"))]
    ) as it:
        for text in ("begin", "later"):
            await it.client.call(
                PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text=text)])
            )
            await wait_until(it.calls)
        seen = await asyncio.to_thread(shown, Desk(tmp_path), "session", "show", it.session_id)
        lines = [line.strip() for line in seen.splitlines()]
        assert lines[lines.index("> later") + 1] == "queued"
        assert lines.count("queued") == 1
        assert sum("Not complete" in line for line in lines) == 1


def test_sessions_of_all_projects_are_listed_with_their_directories(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        (tmp_path / "other").mkdir()
        shown(desk, "run", "--title", "Global", "--dir", str(tmp_path / "other"), "hello")
        desk.git("init", "-q")
        desk.git("commit", "-q", "--allow-empty", "-m", "x")
        shown(desk, "run", "--title", "Repo", "hello")
    assert [each["title"] for each in listed(desk)] == ["Repo"]
    assert [each["title"] for each in listed(desk, "--all")] == ["Repo", "Global"]
    everywhere = shown(desk, "session", "list", "--all")
    assert str(desk.work) in everywhere
    assert str(tmp_path / "other") in everywhere


def test_a_list_says_that_it_stops_and_shows_names_that_are_found(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        for title in ("One", "Two", "Three"):
            shown(desk, "run", "--title", title, "hello")
        done = desk.run("session", "list", "-n", "2")
        assert len(done.stdout.splitlines()) == 2
        assert "2 of 3 sessions are shown" in done.stderr
        assert desk.run("session", "list", "-n", "3").stderr == ""
        # Of two thousand names, two may have one.
        counts = Counter(each["slug"] for each in listed(desk))
        slug, title = next(
            (str(each["slug"]), each["title"]) for each in listed(desk) if counts[each["slug"]] == 1
        )
        assert slug in desk.run("session", "list").stdout
        assert shown(desk, "session", "show", slug).startswith(f"{title}\n")
        assert "Done." in shown(desk, "run", "--session", slug, "again")
        assert json.loads(shown(desk, "export", slug))["info"]["title"] == title


def test_an_archived_session_is_left_out_until_it_is_brought_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        for title in ("One", "Two"):
            shown(desk, "run", "--title", title, "hello")
        two, one = (str(each["id"]) for each in listed(desk))
        assert shown(desk, "session", "archive", two) == f"Archived {two}.\n"
        assert [each["title"] for each in listed(desk)] == ["One"]
        assert "[archived] Two" in shown(desk, "session", "list", "--archived")
        assert shown(desk, "session", "show").startswith("One\n")
        assert result(desk.run("run", "-c", "--format", "json", "more"))["sessionID"] == one
        shown(desk, "session", "archive", one)
        refused = desk.run("run", "-c", "more")
        assert (refused.returncode, "--archived" in refused.stderr) == (2, True)
        assert "except archived ones" in desk.run("session", "list").stderr
        shown(desk, "session", "unarchive", one, two)
        assert len(listed(desk)) == 2


def test_a_subagents_calls_are_found_in_the_list_and_below_its_call(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    task = call("task", description="Look around", prompt="look around", subagent_type="general")

    def choose(received: ReceivedRequest) -> Answer:
        said = [m for m in received.json["messages"] if m["role"] == "user"][-1]["content"]
        mine = (
            (bash("echo seen"), Answer(text="I saw."))
            if "look around" in json.dumps(said)
            else (task, Answer(text="Ok."))
        )
        return steps(*mine)(received)

    with serving(choose) as server:
        desk.use(server)
        shown(desk, "run", "--auto", "--title", "One", "go")
    parent, child = listed(desk, "--children")
    assert child["parentID"] == parent["id"]
    assert len(listed(desk)) == 1
    first, second = shown(desk, "session", "list", "--children").splitlines()
    assert first.startswith(str(parent["id"]))
    assert second.startswith(f"  {child['id']}")
    lines = shown(desk, "session", "show").splitlines()
    at = next(number for number, line in enumerate(lines) if "task" in line)
    assert lines[at + 1] == "    ✓ bash   echo seen"
    assert lines[at + 2] == f"    codeloop session show {child['id']}"
    assert "I saw." in shown(desk, "session", "show", str(child["id"]))


def test_a_session_is_shown_as_the_json_that_is_exported(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        shown(desk, "run", "--title", "One", "hello")
    assert json.loads(shown(desk, "session", "show", "--json")) == json.loads(shown(desk, "export"))


def test_a_terminal_is_asked_before_a_session_is_deleted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        for title in ("One", "Two", "Three"):
            shown(desk, "run", "--title", title, "hello")
    ids = [str(each["id"]) for each in listed(desk)]
    for reply, code, left in (("n", 1, 3), ("\x03", 1, 3), ("", 1, 3), ("y", 0, 2)):
        terminal = Terminal(desk, "session", "delete", ids[0])
        terminal.wait_for("Delete this session")
        terminal.type(reply)
        assert terminal.end() == code, reply
        assert len(listed(desk)) == left
    terminal = Terminal(desk, "session", "delete", "--yes", ids[1])
    assert terminal.end() == 0
    assert "for good" not in terminal.shown
    assert shown(desk, "session", "delete", ids[2]) == f"Deleted {ids[2]}.\n"
