"""Forty bugs and forty clean changes, reviewed: what a model reports rightly is posted,
what it makes up is not.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.automation.ci.ci_project import CiProject, make_bare
from tests.automation.ci.github_server import GitHubServer
from tests.automation.ci.host_server import serving_host
from tests.automation.ci.seeds import SEEDS, Seed
from tests.cli.program import call, serving, steps
from tests.support.answers import Answer, Call

ROUNDS = 5
EACH = len(SEEDS) // ROUNDS


@dataclass(frozen=True)
class Claim:
    """A finding that a stood-in model reports, with what it does before: a file that it writes,
    a line that it runs.
    """

    seed: Seed
    kind: str
    line: int
    command: str
    output: str
    files: dict[str, str]
    runs: bool = True

    @property
    def finding(self) -> dict[str, Any]:
        return {
            "path": f"lib/{self.seed.name}.py",
            "line": self.line,
            "title": f"{self.seed.name}: {self.kind}",
            "body": "It is wrong.",
            "command": self.command,
            "output": self.output,
        }


def check(seed: Seed, expected: object, got: object, line: int, kind: str) -> Claim:
    """Claim that a call gives something else than it should, with a test that says so."""
    path = f"check_{seed.name}_{kind}.py"
    text = (
        f"from lib.{seed.name} import {seed.name}\n\ngot = {seed.call}\n"
        f'assert got == {expected!r}, f"{seed.name} gives {{got!r}}"\n'
    )
    shown = f"AssertionError: {seed.name} gives {got!r}"
    return Claim(seed, kind, line, f"PYTHONPATH=. python3 -S {path}", shown, {path: text})


def make_up(seed: Seed, kind: str, line: int, value: object, source: str, other: Claim) -> Claim:
    """Claim a bug that is none, in one of the ways that models have."""
    name = seed.name
    quiet = f"PYTHONPATH=. python3 -S -c 'from lib.{name} import {name}; print(\"{name}\", {seed.call!r})'"
    match kind:
        case "wrong test":
            return check(seed, "something else", value, line, "wrong")
        case "never run":
            return Claim(
                seed,
                kind,
                line,
                f"python3 -m pytest tests/test_{name}.py",
                f"FAILED {name} - assert",
                {},
                runs=False,
            )
        case "invented output":
            return Claim(
                seed, kind, line, f"{quiet} # {kind}", f"AssertionError: {name} gives None", {}
            )
        case "only words":
            return Claim(
                seed,
                kind,
                line,
                f"echo '{name} is wrong: AssertionError'",
                f"{name} is wrong: AssertionError",
                {},
            )
        case "missing module":
            return Claim(
                seed,
                kind,
                line,
                f"python3 -S -m no_such_{name}",
                f"No module named no_such_{name}",
                {},
            )
        case "source as output":
            return Claim(
                seed, kind, line, f"cat lib/{name}.py", source.splitlines()[line - 1].strip(), {}
            )
        case "proof of another":
            return Claim(seed, kind, line, other.command, other.output, {})
        case "random output":
            command = f"python3 -S -c 'import time; print(\"{name} failed at\", time.time_ns() // 10**9 % 1)'"
            return Claim(seed, kind, line, command.replace("% 1)", ")"), f"{name} failed at 1", {})
        case "no such program":
            return Claim(
                seed, kind, line, f"run-{name}-checks", f"run-{name}-checks: command not found", {}
            )
        case "changed the code":
            broken = f"def {name}(*args):\n    return 'broken'\n"
            claim = check(seed, value, "broken", line, "changed")
            return Claim(
                seed,
                kind,
                line,
                claim.command,
                claim.output,
                {**claim.files, f"lib/{name}.py": broken},
            )
        case _:
            # The line of the definition, which did not change.
            return Claim(seed, kind, 1, quiet, f"{name}", {})


KINDS = (
    *(
        "wrong test",
        "never run",
        "invented output",
        "only words",
        "missing module",
        "source as output",
    ),
    *("proof of another", "random output", "no such program", "changed the code", "unchanged line"),
)


def model_of(true: Sequence[Claim], false: Sequence[Claim]) -> tuple[Answer, ...]:
    """Return the answers of a model that makes the false claims first."""
    claims = [*false, *true]
    files = {path: text for each in claims for path, text in each.files.items()}
    writes = [
        Call("write", json.dumps({"filePath": path, "content": text}), f"w{n}")
        for n, (path, text) in enumerate(files.items())
    ]
    reads = [
        Call("read", json.dumps({"filePath": path}), f"r{n}")
        for n, path in enumerate(files)
        if path.startswith("lib/")
    ]
    commands = [each.command for each in claims if each.runs]
    runs = [
        Call("bash", json.dumps({"command": command, "description": "Tries it"}), f"b{n}")
        for n, command in enumerate(dict.fromkeys(commands))
    ]
    found = [each.finding for each in claims]
    return (
        *((Answer(calls=tuple(reads)),) if reads else ()),
        Answer(calls=tuple(writes)),
        Answer(calls=tuple(runs)),
        call("StructuredOutput", call_id="out", findings=found),
    )


@pytest.mark.slow
def test_at_most_a_tenth_of_what_is_posted_is_false_and_every_bug_is_posted(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    kinds = cycle(KINDS)
    posted, passed = list[str](), Counter[str]()
    claimed = 0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        bugs = SEEDS[number * EACH : (number + 1) * EACH]
        cleans = [SEEDS[(place + (number + 2) * EACH) % len(SEEDS)] for place in range(EACH)]
        changes = {seed.name: seed.changed(is_bug=True) for seed in bugs} | {
            seed.name: seed.changed(is_bug=False) for seed in cleans
        }
        true = [
            check(
                seed,
                seed.value(seed.source, scratch),
                seed.value(changes[seed.name], scratch),
                seed.line(is_bug=True),
                "true",
            )
            for seed in bugs
        ]
        false = list[Claim]()
        for seed in (*bugs, *cleans):
            source, line = changes[seed.name], seed.line(is_bug=seed in bugs)
            before, now = seed.value(seed.source, scratch), seed.value(source, scratch)
            if (
                seed in cleans and before != now
            ):  # meant by its author; a model may well take it for a bug
                assert seed.meant
                false.append(check(seed, before, now, line, "meant"))
            else:
                kind = next(kinds)
                if kind == "changed the code" and seed in bugs:
                    kind = next(kinds)  # else the true finding about it would be lost with the code
                false.append(
                    make_up(seed, kind, line, now, source, true[1 if seed is bugs[0] else 0])
                )
        claimed += len(false)
        bare = make_bare(folder, {f"lib/{seed.name}.py": seed.source for seed in SEEDS})
        with (
            serving_host(GitHubServer(bare)) as host,
            serving(steps(*model_of(true, false))) as model,
        ):
            it = CiProject(folder, host, model)
            it.branch("change", {f"lib/{name}.py": text for name, text in changes.items()})
            pull = host.add_pull("change")
            done = it.handle("pull_request", host.event("pull_request", "opened", pull))
            assert done.returncode == 0, done.stderr
            assert host.violations == []
            posted += [
                next(line for line in row["body"].splitlines() if line.startswith("**"))
                for row in host.line_comments
            ]
            (text,) = host.own_comments(pull)
            assert f"{len(host.line_comments)} findings posted" in text
    for title in posted:
        passed[title.strip("*").partition(": ")[2]] += 1
    wrong = sum(count for kind, count in passed.items() if kind != "true")
    print(
        "missing:",
        {seed.name for seed in SEEDS}
        - {title[2:].partition(": ")[0] for title in posted if "true" in title},
    )
    print(
        f"{claimed} false findings, {len(SEEDS)} true; posted: {dict(passed)}; false: {wrong / len(posted):.1%}"
    )
    assert wrong / len(posted) <= 0.1
    assert passed["true"] == len(SEEDS)
