"""The real program killed at every named point of a turn of twelve steps: F1, F2, F3, F4, F20."""

import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from codeloop.kit.fault_injection import POINT_DESCRIPTIONS
from codeloop.store.database import MIGRATIONS
from tests.cli.program import COMMAND, Desk, result, serving
from tests.faults.test_session_move import MOVING
from tests.faults.test_worktrees import MAKING, MERGING, REMOVING
from tests.faults.twelve_steps import (
    TwelveSteps,
    check_all,
    check_shown_parts,
    continue_work,
    has_sessions,
    list_open_calls,
    prepare_project,
    run_with_fault,
)

SOURCE = Path(__file__).resolve().parents[2] / "src"
QUICK = (
    ("store.outbox", 20),
    ("call.effect", 6),
    ("compaction.summary", 1),
    ("files.write.after", 3),
)
NTHS = {
    "migration": (1, 9, 17),
    "session.create": (1,),
    "prompt.store": (1,),
    "store.begin": (1, 2, 3, 5, 12, 25, 40),
    "store.outbox": (1, 2, 3, 5, 12, 25, 40),
    "store.commit": (1, 2, 3, 5, 12, 25, 40),
    "step.start": (1, 6, 12),
    # On a busy machine several deltas may come at once; each of the five texts has at least one.
    "step.delta": (1, 2, 3, 5),
    "step.call_ready": (1, 6, 7, 8, 13),
    "call.start": (1, 2, 6, 8, 12),
    "call.effect": (1, 2, 4, 7, 11, 13),
    "call.result": (1, 2, 7, 8, 13),
    "step.finish": (1, 7, 8, 12),
    "compaction.start": (1,),
    "compaction.summary": (1,),
    "compaction.done": (1,),
    "files.write.before": (1, 2, 3, 4, 5, 7),
    "files.write.after": (1, 2, 3, 4, 5, 7),
    "snapshot": (1, 2, 5, 9),
}
"""When each point is struck; `recover` is only reached by what recovers."""
EVERY = [(name, nth) for name, nths in NTHS.items() for nth in nths]
killed_at_every_point = pytest.mark.parametrize(
    ("name", "nth"),
    [*QUICK, *(pytest.param(*row, marks=pytest.mark.slow) for row in EVERY)],
)


def check_kill(folder: Path, name: str, nth: int) -> None:
    """Kill there, see that all that was acknowledged is stored, go on to the end,
    and go on once more.
    """
    desk = Desk(folder)
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        done = run_with_fault(desk, f"{name}:{nth}:kill")
        assert done.returncode == -9, done
        check_shown_parts(desk, done.stdout)
        told = list_open_calls(desk) if name != "migration" else []
        continue_work(desk, server, told=told)
        check_all(desk)
        continue_work(desk, server, told=[])
        check_all(desk)


@killed_at_every_point
def test_a_kill_loses_nothing_and_repeats_nothing(tmp_path: Path, name: str, nth: int) -> None:
    check_kill(tmp_path, name, nth)


@pytest.mark.parametrize(
    "point", ["recover:1", pytest.param("store.outbox:1", marks=pytest.mark.slow)]
)
def test_a_kill_while_recovering_still_leaves_one_result_for_each_call(
    tmp_path: Path, point: str
) -> None:
    desk = Desk(tmp_path)
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        assert run_with_fault(desk, "call.effect:6:kill").returncode == -9
        told = list_open_calls(desk)
        assert told
        for _ in range(2):
            assert run_with_fault(desk, f"{point}:kill", "-c", "go on").returncode == -9
            assert list_open_calls(desk) == told
        continue_work(desk, server, told=told)
        check_all(desk)


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(2, 12))
def test_a_kill_at_each_write_of_a_recovery(tmp_path: Path, nth: int) -> None:
    desk = Desk(tmp_path)
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        assert run_with_fault(desk, "call.effect:7:kill").returncode == -9
        told = list_open_calls(desk)
        assert run_with_fault(desk, f"store.outbox:{nth}:kill", "-c", "go on").returncode == -9
        continue_work(desk, server, told=told)
        check_all(desk)


def test_a_session_that_could_not_even_be_made_is_made_by_the_next_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(TwelveSteps(), validate=True) as server:
        prepare_project(desk, server)
        assert run_with_fault(desk, "session.create:1:kill").returncode == -9
        assert not has_sessions(desk)
        continue_work(desk, server, told=[])
        check_all(desk)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("elsewhere:1:kill", "there is no point 'elsewhere'; the points are: migration, "),
        ("recover:0:kill", "'0' is not a count"),
        ("recover:1:burn", "the action one of kill, enospc, eio, delay"),
        ("recover:1:kill:2", "it takes name:nth:action"),
        ("recover", "is not a count"),
    ],
)
def test_a_fault_that_is_none_is_said_before_anything_is_done(
    tmp_path: Path, value: str, said: str
) -> None:
    desk = Desk(tmp_path)
    done = desk.run("run", "hello", CODELOOP_FAULT=value)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith(f"codeloop: CODELOOP_FAULT={value}: ")
    assert not desk.home.exists()


def test_every_point_of_the_table_stands_in_the_program_once() -> None:
    code = "".join(path.read_text() for path in SOURCE.rglob("*.py"))
    placed = re.findall(r'fault_injection\.(?:pass_point|pass_point_async)\("([a-z._]+)"\)', code)
    assert sorted(placed) == sorted(POINT_DESCRIPTIONS)
    elsewhere = {*MAKING, *MERGING, *REMOVING, *MOVING}
    assert set(NTHS) | {"recover", "migration.backup"} | elsewhere == set(POINT_DESCRIPTIONS)


MIGRATED = """
import sys
from pathlib import Path
from codeloop.store import database
from codeloop.store.store import Store
step = "ALTER TABLE session ADD COLUMN extra TEXT; UPDATE session SET extra = 'x'; PRAGMA user_version = {}"
database.MIGRATIONS = (*database.MIGRATIONS, step.format(len(database.MIGRATIONS) + 1))
store = Store(Path(sys.argv[1]))
print(len(store.list_sessions()), flush=True)
"""


@pytest.mark.parametrize(
    "point", ["migration:1", "migration:2", "migration:3", "migration.backup:1"]
)
def test_a_migration_killed_midway_is_atomic_and_done_by_the_next_start(
    tmp_path: Path, point: str
) -> None:
    desk = Desk(tmp_path)
    with serving(TwelveSteps()) as server:
        prepare_project(desk, server)
        assert (
            result(desk.run("run", "--auto", "--format", "json", "--max-steps", "1", "work"))[
                "exitCode"
            ]
            == 4
        )
    path = desk.database()

    def migrate(**environment: str) -> subprocess.CompletedProcess[str]:
        argv = [COMMAND[0], "-c", MIGRATED, str(path)]
        return subprocess.run(
            argv, **desk.options(**environment), capture_output=True, text=True, check=False
        )

    assert migrate(CODELOOP_FAULT=f"{point}:kill").returncode == -9
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert "extra" not in [row[1] for row in database.execute("PRAGMA table_info(session)")]
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    done = migrate()
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    with closing(sqlite3.connect(path.with_name(f"{path.name}.v{len(MIGRATIONS)}.bak"))) as backup:
        assert backup.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert backup.execute("SELECT count(*) FROM session").fetchone() == (1,)
    refused = desk.run("run", "--format", "json", "-c", "go on")
    assert refused.returncode == 1
    assert "is from a newer codeloop" in result(refused)["message"]
