"""One sample of Inspect, done by an oracle, by nobody and by codeloop;
writes what each came to as JSON.
"""

import json
import sys
from pathlib import Path

import inspect_ai
from inspect_agent import codeloop
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import sandbox

BROKEN = "def add(a, b):\n    return a - b\n"


@scorer(metrics=[accuracy()])
def check() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        done = await sandbox().exec(["python3", "-c", "import calc; assert calc.add(2, 3) == 5"])
        return Score(value=1.0 if done.success else 0.0)

    return score


@solver
def oracle() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        await sandbox().write_file("calc.py", BROKEN.replace("-", "+"))
        return state

    return solve


@solver
def nothing() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state

    return solve


def main() -> None:
    sample = Sample(input="`add` in calc.py gives wrong sums. Fix it.", files={"calc.py": BROKEN})
    solvers = {"oracle": oracle(), "nothing": nothing(), "codeloop": codeloop(model="local/m")}
    tasks = [
        Task(name=name, dataset=[sample], solver=solve, scorer=check(), sandbox="local")
        for name, solve in solvers.items()
    ]
    found = {}
    for log in inspect_ai.eval(tasks, model="mockllm/model", display="none", log_dir="logs"):
        assert log.status == "success", log.error
        (done,) = log.samples or []
        usage = done.output.usage
        found[log.eval.task] = {
            "score": (done.scores or {})["check"].value,
            "answer": done.output.completion,
            "input_tokens": usage.input_tokens if usage else 0,
            "output_tokens": usage.output_tokens if usage else 0,
            "cost": done.store.get("codeloop:cost"),
            "trajectory": done.store.get("codeloop:trajectory"),
            "tools": [
                call.function
                for message in done.messages
                for call in getattr(message, "tool_calls", None) or []
            ],
        }
    Path(sys.argv[1]).write_text(json.dumps(found))


main()
