"""`codeloop fleet run --on ray`: jobs on a real Ray cluster of two nodes, of which one dies,
and a coordinator too.
"""

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.automation.fleet.test_fleet import DONE, repository, status, write_table
from tests.cli.program import COMMAND, Desk, bash, serving, steps
from tests.support.installed_programs import install_python_programs

pytestmark = pytest.mark.interop
CLUSTER = """
import sys
from ray.cluster_utils import Cluster

size = {"num_cpus": 2, "object_store_memory": 100_000_000}
cluster = Cluster(initialize_head=True, head_node_args={**size, "include_dashboard": False})
second = cluster.add_node(**size)
print("address", cluster.address, flush=True)
if sys.stdin.readline():
    cluster.remove_node(second, allow_graceful=False)
    sys.stdin.readline()
cluster.shutdown()
"""


class Ray:
    """A cluster whose nodes have a home of codeloop of their own.
    `site`: where Ray is installed.
    """

    def __init__(self, node: Desk, programs: Path) -> None:
        self.node = node
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.site = str(programs.parent / "lib" / version / "site-packages")
        self._process = subprocess.Popen(
            [str(programs / "python"), "-c", CLUSTER],
            **node.options(
                RAY_health_check_period_ms="1000", RAY_health_check_failure_threshold="3"
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        words = next(
            (line.split() for line in self._process.stdout if line.startswith("address")), ["", ""]
        )
        self.address = words[1]

    def kill_node(self) -> None:
        """Kill the second node with all of its tasks."""
        assert self._process.stdin is not None
        self._process.stdin.write("kill\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End the cluster."""
        self._process.communicate(timeout=300)


@contextmanager
def cluster(folder: Path, command: str) -> Generator[tuple[Desk, Ray]]:
    programs = install_python_programs("ray")
    with serving(steps(bash(command), DONE)) as model:
        node = Desk(folder / "node")
        node.folder.mkdir()
        node.use(model, permission={"bash": "allow"})
        ray = Ray(node, programs)
        try:
            assert ray.address, "the cluster has started"
            desk = Desk(folder, environment={"PYTHONPATH": ray.site})
            desk.use(model)
            yield desk, ray
        finally:
            ray.close()


def run_on(ray: Ray, table: str, *more: str) -> tuple[str, ...]:
    codeloop = f"{sys.executable} -P -c '{COMMAND[2]}'"
    return "fleet", "run", table, "--on", f"ray:{ray.address}", "--codeloop", codeloop, *more


def wait_for_workers(ray: Ray, number: int) -> None:
    folder = ray.node.home / "data" / "fleet-worker"
    deadline = time.monotonic() + 300
    while len(list(folder.glob("*/attempt/run.jsonl"))) < number:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_jobs_have_their_effect_once_when_a_node_and_a_coordinator_die(tmp_path: Path) -> None:
    number = 4
    with cluster(tmp_path, "sleep 2; echo line >> log") as (desk, ray):
        source = repository(desk)
        table = write_table(
            desk,
            [{"id": f"j{at}", "repository": str(source), "prompt": "add"} for at in range(number)],
        )
        coordinator = desk.start(*run_on(ray, table))
        wait_for_workers(ray, 2)
        coordinator.kill()
        coordinator.communicate()
        coordinator = desk.start(*run_on(ray, table))
        wait_for_workers(ray, 2)
        ray.kill_node()
        output = coordinator.communicate(timeout=600)
        assert coordinator.returncode == 0, output
        found = status(desk)
        assert (found["done"], found["failed"], found["waiting"]) == (number, 0, 0)
        for at in range(number):
            work = desk.home / "data" / "fleet" / "jobs" / "jobs" / f"j{at}" / "work"
            assert (work / "log").read_text() == "start\nline\n"
            log = subprocess.check_output(["git", "-C", work, "log", "--oneline"], text=True)
            assert len(log.splitlines()) == 2
        wrong = desk.run(
            "fleet",
            "run",
            table,
            "--name",
            "x",
            "--on",
            f"ray:{ray.address}",
            "--codeloop",
            "/no/codeloop",
        )
        assert wrong.returncode == 130
        assert "codeloop was not found on a node" in wrong.stderr


def test_a_stop_ends_what_runs_on_the_nodes(tmp_path: Path) -> None:
    with cluster(tmp_path, "sleep 100") as (desk, ray):
        source = repository(desk)
        table = write_table(
            desk, [{"id": f"j{at}", "repository": str(source), "prompt": "wait"} for at in range(3)]
        )
        coordinator = desk.start(*run_on(ray, table))
        wait_for_workers(ray, 3)
        assert desk.run("fleet", "stop", "jobs").returncode == 0
        assert coordinator.wait(300) == 130
        coordinator.communicate()
        assert status(desk)["waiting"] == 3
        folder = ray.node.home / "data" / "fleet-worker"
        deadline = time.monotonic() + 300
        while list(folder.glob("*/attempt")):
            assert time.monotonic() < deadline, "a worker that has ended removes what it made"
            time.sleep(0.1)
