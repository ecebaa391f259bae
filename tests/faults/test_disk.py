"""Folders that can't be read or written, a full disk, no HOME,
broken files: one clear message and the exit code.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import (
    COMMAND,
    HANGING,
    KEY,
    Desk,
    bash,
    call,
    events,
    result,
    serving,
    steps,
    without_privileges,
)
from tests.faults.stored_session import check_integrity, list_calls_without_result
from tests.support.answers import Answer

HELLO = Answer(text="Hello.")


@pytest.fixture
def plain(tmp_path: Path) -> Desk:
    """A desk whose program may not write where the mode forbids it."""
    return Desk(tmp_path, wrapper=without_privileges())


def test_a_data_folder_that_can_not_be_written(plain: Desk) -> None:
    with serving([HELLO]) as server:
        plain.use(server)
        (plain.home / "data").mkdir(mode=0o500)
        done = plain.run("run", "--format", "json", "hello")
        assert server.requests == []
    assert done.returncode == 1
    message = result(done)["message"]
    assert str(plain.home / "data") in message
    assert "CODELOOP_HOME" in message
    assert len(message.splitlines()) == 1


def test_a_database_that_can_not_be_written(plain: Desk) -> None:
    with serving([HELLO]) as server:
        plain.use(server)
        assert plain.run("run", "hello").returncode == 0
        database = plain.database()
        database.chmod(0o400)
        database.parent.chmod(0o500)
        done = plain.run("run", "--format", "json", "-c", "hello")
        database.parent.chmod(0o700)
        database.chmod(0o600)
        assert done.returncode == 1
        assert str(database) in result(done)["message"]
        assert plain.run("run", "-c", "hello").returncode == 0


def test_a_project_without_read_permission(plain: Desk) -> None:
    closed = plain.work / "closed"
    closed.mkdir()
    closed.chmod(0o000)
    done = plain.run("run", "--format", "json", "--dir", "closed", "hello")
    closed.chmod(0o700)
    assert done.returncode == 1, done
    assert "closed" in result(done)["message"]


def test_a_folder_without_read_permission_inside_the_project(plain: Desk) -> None:
    closed = plain.work / "closed"
    closed.mkdir()
    closed.chmod(0o000)
    answers = [
        Answer(
            calls=bash("ls", "c1").calls
            + call("list", call_id="c2").calls
            + call("glob", call_id="c3", pattern="**/*").calls
        ),
        HELLO,
    ]
    with serving(steps(*answers)) as server:
        plain.use(server)
        done = plain.run("run", "--format", "json", "look around")
    closed.chmod(0o700)
    assert result(done)["exitCode"] == 0, result(done)


@pytest.mark.parametrize("kib", [16, 160])
def test_a_disk_that_gets_full_is_said_and_the_session_goes_on(tmp_path: Path, kib: int) -> None:
    desk = Desk(tmp_path)
    long = steps(*(bash(f"echo {number}; seq 3000", f"c{number}") for number in range(12)), HELLO)
    with serving(long) as server:
        desk.use(server)
        assert desk.run("run", "--title", "T", "--max-steps", "1", "hello").returncode == 4
        config = (desk.home / "config" / "codeloop.json").read_bytes()
        # A limit on the size of a file stands for the end of the disk: the write
        # fails in the same place.
        limit = f"import resource as r; r.setrlimit(r.RLIMIT_FSIZE, ({kib} << 10, {kib} << 10)); "
        done = subprocess.run(
            [COMMAND[0], "-c", limit + COMMAND[2], "run", "--format", "json", "-c", "more"],
            **desk.options(), capture_output=True, text=True, timeout=HANGING, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done
        assert "space" in result(done)["message"], result(done)
        assert (desk.home / "config" / "codeloop.json").read_bytes() == config
        check_integrity(desk)
        server.answers = [HELLO]
        again = desk.run("run", "--format", "json", "-c", "again")
        assert result(again)["exitCode"] == 0, result(again)
    assert list_calls_without_result(desk) == []
    check_integrity(desk)


def test_without_a_home_the_message_says_what_to_set(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    options = desk.options()
    options["env"] = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        [*COMMAND, "run", "--format", "json", "hello"], **options, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 1
    assert "CODELOOP_HOME" in result(done)["message"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{\n  "model": nope\n}', ":2:12"),
        ('{"model": "a/b",\n\n  "model', ":3:3"),
        ('{\n "provider": {"x": 5}}', ":2:20"),
    ],
)
def test_a_broken_configuration_names_file_line_and_column(
    tmp_path: Path, text: str, place: str
) -> None:
    desk = Desk(tmp_path)
    path = desk.home / "config" / "codeloop.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    done = desk.run("run", "--format", "json", "hello")
    assert done.returncode == 1
    assert result(done)["message"].startswith(f"{path}{place}")
    assert path.read_text() == text
    assert desk.run("run", "hello").stderr.startswith(f"codeloop: {path}{place}")


def test_a_database_that_is_none_is_left_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([HELLO]) as server:
        desk.use(server)
        desk.run("run", "hello")
        path = desk.database()
        for extra in ("-wal", "-shm"):
            path.with_name(path.name + extra).unlink(missing_ok=True)
        path.write_bytes(b"not a database " * 1000)
        done = desk.run("run", "--format", "json", "hello")
    assert done.returncode == 1
    assert str(path) in result(done)["message"]
    assert path.read_bytes().startswith(b"not a database")


def test_an_environment_with_odd_names_is_no_problem(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "deep" / "é\n\x1b]0;x\x07").mkdir(parents=True)
    with serving(steps(bash("ls -a deep"), HELLO)) as server:
        desk.use(server)
        done = desk.run(
            "run",
            "--format",
            "json",
            "--dir",
            "deep/é\n\x1b]0;x\x07",
            "hello",
            LANG="C",
            LC_ALL="C",
        )
    assert result(done)["exitCode"] == 0, result(done)
    assert KEY not in done.stdout
    assert events(done.stdout)
