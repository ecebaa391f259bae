"""Measures the requests of one task, with language servers and without: their
number and their bytes.

The task: a method is renamed, then used by a new function, whose import is forgotten at first. The
calls of the model are `SERVER_STEPS` and `NO_SERVER_STEPS` in `bench/trajectories.py`.
"""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from bench.bench_run import BenchRun
from bench.process_runner import run_command
from bench.scenario_server import Scenario, ScenarioServer
from bench.subjects import CODELOOP_CONFIG, install_subject
from bench.trajectories import MODULE_COUNT, make_project

_ONLY_TY = {
    "lsp": {name: {"disabled": True} for name in ("basedpyright", "pyright", "pylsp", "ruff")}
}
_CHECK_PROGRAM = """from shop import part_2
from shop.invoice import Invoice

for number in range(80):
    print(f"test_bill_{number}: checked", part_2.bill_2(Invoice(number)), part_2.rounded(Invoice(number)))
"""


def measure_language_task(bench: BenchRun) -> None:
    """Measure the task twice: with ty, and without any server.
    Nothing is measured where ty is not installed.
    """
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    if shutil.which("ty", path=path) is None:
        return
    for name, config in (("servers", _ONLY_TY), ("no-servers", {"lsp": False})):
        environ = {**bench.codeloop.subject.environ, "PATH": path}
        environ["CODELOOP_CONFIG_CONTENT"] = json.dumps({**json.loads(CODELOOP_CONFIG), **config})
        here = install_subject(
            replace(bench.codeloop.subject, environ=environ), bench.folder / f"task-{name}"
        )
        make_shop(here.project)
        with ScenarioServer(Scenario("trajectory", name=name), keep_bodies=True) as server:
            run_command(here.fill(here.subject.argv, server.url))
            requests = server.read_requests()
        changed_module = (here.project / "shop" / "part_2.py").read_text()
        # The method's new name, and the import that the new function needs.
        if "paper.amount_due() + 2" not in changed_module or "import up" not in changed_module:
            raise OSError(f"the task was not done with {name}")
        bench.put_own(f"task-{name}", sum(len(request.body) for request in requests))
        bench.put_own(f"task-{name}-requests", len(requests))


def make_shop(folder: Path) -> None:
    """Write a project in which half of the modules use the method to rename,
    and half another method of that name.
    """
    make_project(folder)
    shop = folder / "shop"
    for name in ("invoice", "order"):
        text = f"class {name.title()}:\n    def __init__(self, base: int) -> None:\n        self.base = base\n\n"
        (shop / f"{name}.py").write_text(
            f"{text}    def total(self) -> int:\n        return self.base * 3\n"
        )
    (shop / "rounding.py").write_text(
        "def up(amount: int) -> int:\n    return -(-amount // 10) * 10\n"
    )
    for number in range(MODULE_COUNT):
        kind = "order" if number % 2 else "invoice"
        module = shop / f"part_{number}.py"
        text = module.read_text().replace(
            "\nRATE", f"\nfrom shop.{kind} import {kind.title()}\n\nRATE", 1
        )
        module.write_text(
            f"{text}def bill_{number}(paper: {kind.title()}) -> int:\n    return paper.total() + {number}\n"
        )
    (folder / "check.py").write_text(_CHECK_PROGRAM)
