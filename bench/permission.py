"""Measures how long the decision about a usual shell line takes."""

import os
import statistics
import subprocess
import time

from bench.bench_run import BenchRun
from codeloop.permission.rules import decide
from codeloop.schema.permission import Action, PermissionRule
from codeloop.shell.analysis import analyse, make_need
from codeloop.tool.builtin.shell.machine_facts import gather_facts
from codeloop.workspace.process.shells import ShellContext
from codeloop.workspace.workspace import Workspace

SHELL_LINE = "git log --oneline -20 -- src | head -5"
RULES: tuple[tuple[str, Action], ...] = (
    ("*", "ask"),
    ("<read-only>", "allow"),
    ("npm test *", "allow"),
    ("git push *", "deny"),
)
DECISIONS_PER_ROUND = 100


def measure_permission(bench: BenchRun) -> None:
    """Measure the CPU of this process for a decision in a repository, under a few rules."""
    folder = bench.folder / "permission"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    workspace = Workspace(folder, folder, bench.folder, dict(os.environ))
    context = ShellContext("ses_bench", folder, workspace.environment, workspace.scratch)
    rules = tuple(
        PermissionRule(permission="bash", pattern=pattern, action=action)
        for pattern, action in RULES
    )
    times: list[float] = []
    for _ in range(max(bench.rounds, 3) * DECISIONS_PER_ROUND):
        start = time.process_time()
        analysis = analyse(SHELL_LINE, gather_facts(SHELL_LINE, folder, context, workspace))
        decide(make_need(SHELL_LINE, analysis), rules)
        times.append((time.process_time() - start) * 1000)
    bench.put_own("permission", statistics.median(times))
