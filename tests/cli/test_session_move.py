"""A session that goes on in another clone: its conversation, its commits,
and its files as they were.
"""

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from codeloop.cli.commands.sessions.move import import_session
from codeloop.schema.errors import CodeloopError
from tests.cli.program import Desk, serving
from tests.support.answers import Answer


@pytest.mark.slow
def test_a_session_goes_on_elsewhere_with_its_files_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    here, there = Desk(tmp_path / "here"), Desk(tmp_path / "there")
    with serving(lambda _received: Answer(text="Noted.")) as server:
        here.git("init", "-q", "-b", "main")
        (here.work / "a.txt").write_text("one\n")
        (here.work / "gone.txt").write_text("gone\n")
        here.git("add", "-A")
        here.git("commit", "-q", "-m", "first")
        there.work.rmdir()
        subprocess.run(
            ["git", "clone", "-q", str(here.work), str(there.folder / "work")], check=True
        )
        here.use(server)
        there.use(server)
        assert here.run("run", "remember the number 7").returncode == 0
        here.git("commit", "-q", "--allow-empty", "-m", "only here")
        (here.work / "a.txt").write_text("changed\n")
        (here.work / "new.txt").write_text("new\n")
        (here.work / "gone.txt").unlink()
        before = here.git("status", "--porcelain")
        file = tmp_path / "moved.zip"
        done = here.run("session", "move", "-o", str(file))
        assert done.returncode == 0, done.stderr
        assert here.git("status", "--porcelain") == before
        assert here.git("for-each-ref", "refs/codeloop") == ""
        assert json.loads(here.run("session", "list", "--json").stdout) == []
        taken = there.run("session", "move", "--import", str(file))
        assert taken.returncode == 0, taken.stderr
        tree = Path(json.loads(there.run("worktree", "list", "--json").stdout)[0]["directory"])
        assert (tree / "a.txt").read_text() == "changed\n"
        assert (tree / "new.txt").read_text() == "new\n"
        assert not (tree / "gone.txt").exists()
        again = taken.stdout.strip().rpartition("Go on with: codeloop ")[2].split()
        assert there.run("run", *again, "which number?").returncode == 0
        assert b"remember the number 7" in b"".join(each.body for each in server.requests[-3:])
        log = subprocess.run(
            ["git", "log", "--format=%s"], cwd=tree, capture_output=True, text=True, check=True
        )
        assert log.stdout.split("\n")[0] == "only here"
        status = subprocess.run(
            ["git", "status", "--porcelain"], cwd=tree, capture_output=True, text=True, check=True
        )
        assert status.stdout == before
        file.write_bytes(b"not a zip")
        refused = there.run("session", "move", "--import", str(file))
        assert (refused.returncode, "not a file that" in refused.stderr) == (1, True)


def test_a_hostile_file_is_refused_and_fills_no_disk(tmp_path: Path) -> None:
    def write(name: str, compression: int, size: int = 10) -> bytearray:
        with zipfile.ZipFile(tmp_path / name, "w", compression) as archive:
            archive.writestr("work.json", json.dumps({"head": "a" * 40, "state": "b" * 40}))
            archive.writestr("session.json", json.dumps({"info": {"id": "ses_x"}, "messages": []}))
            archive.writestr("work.bundle", b"x" * size)
        return bytearray((tmp_path / name).read_bytes())

    bomb = write("bomb.zip", zipfile.ZIP_DEFLATED, 1_000_000)
    plain, packed = (
        write("plain.zip", zipfile.ZIP_STORED),
        write("packed.zip", zipfile.ZIP_DEFLATED),
    )
    encrypted, unknown, broken = bytearray(plain), bytearray(plain), bytearray(packed)
    first, listed = plain.index(b"PK\x03\x04"), plain.index(b"PK\x01\x02")
    encrypted[first + 6], encrypted[listed + 8] = 1, 1
    unknown[first + 8], unknown[listed + 10] = 99, 99
    broken[39:41] = b"\xff\xff"
    for data in (bomb, encrypted, unknown, broken, plain[:40], packed[:-30]):
        (tmp_path / "hostile.zip").write_bytes(data)
        with pytest.raises(CodeloopError, match="is not a file that"):
            import_session(tmp_path / "hostile.zip")


@pytest.mark.slow
def test_a_file_that_cannot_be_written_says_where_the_session_goes_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(lambda _received: Answer(text="Noted.")) as server:
        desk.git("init", "-q", "-b", "main")
        desk.git("commit", "-q", "--allow-empty", "-m", "first")
        desk.use(server)
        session_id = json.loads(
            desk.run("run", "--format", "json", "hello").stdout.splitlines()[-1]
        )["sessionID"]
        missing = str(tmp_path / "missing" / "moved.zip")
        refused = desk.run("session", "move", session_id, "-o", missing)
        assert (
            refused.returncode,
            refused.stderr.strip().endswith("The session goes on here."),
        ) == (1, True)
        assert (
            desk.run("session", "move", session_id, "-o", str(tmp_path / "moved.zip")).returncode
            == 0
        )
        again = desk.run("session", "move", session_id, "-o", missing)
        assert again.returncode == 1
        assert "goes on here" not in again.stderr
        assert f"codeloop session move {session_id} --cancel" in again.stderr
