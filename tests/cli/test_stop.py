"""`codeloop stop --all`: a server, and a run in another project, stop within a second."""

import json
import time
from pathlib import Path

import pytest

from tests.cli.program import Desk, bash, result, serving, steps
from tests.support.answers import Answer


@pytest.mark.slow
def test_everything_that_is_worked_on_stops_within_a_second(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = Desk(tmp_path / "a")
    second = Desk(tmp_path / "b", environment={"CODELOOP_HOME": str(first.home)})
    with serving(steps(bash("touch began; sleep 600"), Answer(text="Over."))) as server:
        first.use(server)
        server_process = first.start("serve", "--port", "0")
        assert server_process.stdout is not None
        url = server_process.stdout.readline().split()[-1]
        running = [
            first.start("run", "--attach", url, "--format", "json", "wait"),
            second.start("run", "wait too"),
        ]
        try:
            deadline = time.monotonic() + 60
            while not all((desk.work / "began").exists() for desk in (first, second)):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            began = time.monotonic()
            done = first.run("stop", "--all", "--json")
            took = time.monotonic() - began
            stopped = json.loads(done.stdout)
            ends = [each.wait(60) for each in running]
        finally:
            for each in (*running, server_process):
                each.kill()
                each.communicate()
    assert len(stopped["stopped"]) == 2
    assert not stopped["left"]
    assert ends == [130, 130]
    assert took < 60, "a bound for a busy machine; bench/ has the figure"
    assert "Nothing was running." in first.run("stop", "--all").stderr
    assert first.run("stop").returncode == 2
    with serving(steps(Answer(text="Goes on."))) as server:
        first.use(server)
        assert result(first.run("run", "--format", "json", "again"))["exitCode"] == 0
