"""`codeloop gc`: what nothing has used for long goes, and nothing else."""

import json
import os
import subprocess
import time
from pathlib import Path

from tests.cli.program import Desk, serving
from tests.support.answers import Answer

DAY = 24 * 60 * 60


def make_old(path: Path, days: float) -> Path:
    """Set the times of a file, or of a folder with all in it."""
    at = time.time() - days * DAY
    for each in [*path.rglob("*"), path]:
        os.utime(each, (at, at))
    return path


def put_old(path: Path, days: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("old")
    return make_old(path, days)


def list_kinds(desk: Desk, *options: str) -> list[str]:
    ended = desk.run("gc", "--json", "--dry-run", *options)
    return [row["kind"] for row in json.loads(ended.stdout)]


def find_data(desk: Desk) -> Path:
    return Path(json.loads(desk.run("debug", "paths", "--json").stdout)["data"])


def list_sessions(desk: Desk) -> list[str]:
    rows = json.loads(desk.run("session", "list", "--all", "--json").stdout)
    return [row["title"] for row in rows]


def test_what_is_old_is_shown_with_its_size_and_goes_when_it_is_not_a_dry_run(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    with serving(lambda _: Answer(text="Yes.")) as server:
        desk.use(server)
        desk.run("run", "--title", "kept", "hello")
        data = find_data(desk)
        (database,) = data.glob("project/*/codeloop.db")
        job = data / "fleet/nightly/attempts/one.1/work"
        job.mkdir(parents=True)
        desk.run("run", "--title", "of a job", "--dir", str(job), "hello")
    old = [
        put_old(data / "log/old.log", 40),
        put_old(database.with_name("codeloop.db.v2.bak"), 50),
        put_old(database.with_name("snapshot") / "0123456789abcdef/objects/ab/cd", 45).parent,
    ]
    make_old(data / "fleet/nightly", 60)
    make_old(database.with_name("snapshot") / "0123456789abcdef", 45)
    young = put_old(data / "log/young.log", 20)
    assert sorted(list_kinds(desk)) == ["backup", "fleet", "log", "undo"]
    assert list_kinds(desk, "--older-than", "70") == []
    shown = desk.run("gc", "--dry-run")
    assert "old.log" in shown.stdout
    assert "together" in shown.stdout
    assert all(each.exists() for each in old), "a dry run removes nothing"
    ended = desk.run("gc", "--yes")
    assert ended.returncode == 0, ended.stderr
    assert not any(each.exists() for each in (*old, data / "fleet/nightly"))
    assert young.exists()
    assert "kept" in list_sessions(desk)
    again = desk.run("gc", "--yes")
    assert "Nothing was unused for 30 days." in again.stderr


def test_sessions_go_only_when_they_are_asked_for_and_what_was_paid_stays(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(lambda _: Answer(text="Yes.")) as server:
        desk.use(server)
        desk.run("run", "--title", "first", "hello")
        desk.run("run", "--title", "second", "hello")
    steps = json.loads(desk.run("stats", "--json").stdout)["total"]["steps"]
    assert steps == 2
    desk.run("gc", "--older-than", "0", "--yes")
    assert sorted(list_sessions(desk)) == ["first", "second"]
    ended = desk.run("gc", "--older-than", "0", "--sessions", "--yes")
    assert ended.returncode == 0, ended.stderr
    assert list_sessions(desk) == []
    assert json.loads(desk.run("stats", "--json").stdout)["total"]["steps"] == 2


def test_the_sessions_of_a_fleet_that_goes_go_with_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(lambda _: Answer(text="Yes.")) as server:
        desk.use(server)
        data = find_data(desk)
        job = data / "fleet/nightly/attempts/one.1/work"
        job.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(job)], check=True)
        desk.run("run", "--title", "of a job", "--dir", str(job), "hello")
        desk.run("run", "--title", "mine", "hello")
    make_old(data / "fleet/nightly", 1)
    ended = desk.run("gc", "--older-than", "0", "--yes")
    assert ended.returncode == 0, ended.stderr
    assert not (data / "fleet/nightly").exists()
    assert list_sessions(desk) == ["mine"]
