"""Recorded trajectories: what a model called, step by step, in a project that is made for them, always the same."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.answers import Answer, Call

MODULES = 12
LOGS = 4
_LINES = 130
_LOG_LINES = 900

Calls = tuple[tuple[str, Mapping[str, object]], ...]
"""What one step calls: tools and their arguments."""


def _module(number: int) -> str:
    rows = [f'"""Part {number} of the shop."""', "", "RATE = 3", ""]
    for line in range(_LINES // 5):
        rows += [f"def part_{number}_{line}(amount: int) -> int:", f'    """Return step {line}."""']
        rows += [f"    return amount * RATE + {(number + 1) * 1000 + line}", "", ""]
    return "\n".join(rows)


def make_project(folder: Path) -> None:
    """Write the files that the trajectories read, change and run."""
    (folder / "shop").mkdir()
    for number in range(MODULES):
        (folder / "shop" / f"part_{number}.py").write_text(_module(number))
    for number in range(LOGS):
        rows = (
            f"{line:05} build {number}: compiled unit {line * 7919 % 1000:03} of target" for line in range(_LOG_LINES)
        )
        (folder / f"build-{number}.log").write_text("\n".join(rows) + "\n")
    names = (f"echo 'test_part_{number % MODULES}_{number}: checked in {number % 7} ms'" for number in range(80))
    (folder / "check.sh").write_text("\n".join(names) + "\n")
    (folder / "Makefile").write_text("test:\n\tsh check.sh\n\nlint:\n\ttrue\n")
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n\n[tool.ruff]\n\n[tool.mypy]\n")


CHECK: Calls = (("bash", {"command": "sh check.sh", "description": "Runs the tests"}),)


def _read(*numbers: int) -> Calls:
    return tuple(("read", {"filePath": f"shop/part_{number}.py"}) for number in numbers)


def _edit(number: int, line: int) -> Calls:
    old = f"return amount * RATE + {(number + 1) * 1000 + line}"
    given = {"filePath": f"shop/part_{number}.py", "oldString": old, "newString": f"{old} - 1"}
    return (("edit", given),)


def _log(number: int) -> Calls:
    return (("bash", {"command": f"cat build-{number}.log", "description": "Shows a log"}),)


FIX: tuple[Calls, ...] = (
    (("grep", {"pattern": "def part_3_7"}), ("glob", {"pattern": "*.toml"})),
    _read(3),
    CHECK,
    _edit(3, 7),
    CHECK,
)
REFACTOR: tuple[Calls, ...] = (
    *(calls for number in range(MODULES) for calls in (_read(number), _edit(number, 1), CHECK)),
    _read(0, 1),
    _edit(0, 2),
    CHECK,
)
LONG: tuple[Calls, ...] = tuple(
    calls for turn in range(24) for calls in (_read(turn % 4), _edit(turn % 4, turn // 4), CHECK)
)
"""Four files that are read, changed and checked in turn: most outputs are given again later."""
READING_LOGS: tuple[Calls, ...] = (*(_log(number) for number in range(LOGS)), _edit(5, 5), CHECK, _log(0))
BEFORE_THE_BREAK: tuple[Calls, ...] = (
    _read(0, 1),
    CHECK,
    _edit(0, 1),
    CHECK,
    _read(2, 3),
    _edit(2, 1),
    CHECK,
    _edit(3, 1),
    _read(2),
    CHECK,
)
AFTER_THE_BREAK: tuple[Calls, ...] = (CHECK, _read(4), _edit(4, 1), _edit(1, 2), CHECK)

CHECK_SHOP: Calls = (("bash", {"command": "python3 check.py", "description": "Runs the tests"}),)
READ_INVOICE: Calls = (("read", {"filePath": "shop/invoice.py"}),)
_USE = "def rounded(paper: Invoice) -> int:\n    return up(paper.amount_due())\n"


def _change(name: str, old: str, new: str) -> Calls:
    return (("edit", {"filePath": f"shop/{name}.py", "oldString": old, "newString": new}),)


def _bill(number: int) -> Calls:
    old = f"return paper.total() + {number}"
    return _change(f"part_{number}", old, old.replace("total", "amount_due"))


ADD_USE = _change("part_2", "paper.amount_due() + 2\n", f"paper.amount_due() + 2\n\n\n{_USE}")
FIXERS = _change("part_2", "import Invoice\n", "import Invoice\nfrom shop.rounding import up\n")
RENAME: Calls = (
    ("lsp", {"operation": "rename", "filePath": "shop/invoice.py:5", "symbol": "total", "newName": "amount_due"}),
)
SERVERS: tuple[Calls, ...] = (READ_INVOICE, RENAME, ADD_USE, FIXERS, CHECK_SHOP)
"""A method is renamed, then used in one more place, where an import is forgotten at first."""
NO_SERVERS: tuple[Calls, ...] = (
    READ_INVOICE,
    (("grep", {"pattern": r"\btotal\("}), ("grep", {"pattern": "import Invoice"})),
    (
        *_change("invoice", "def total", "def amount_due"),
        *(call for number in range(0, MODULES, 2) for call in _bill(number)),
    ),
    ADD_USE,
    CHECK_SHOP,
    FIXERS,
    CHECK_SHOP,
)
"""The same: which of two methods of that name a module uses is seen by its imports; what is missing, by the tests."""

TRAJECTORIES: dict[str, tuple[Calls, ...]] = {
    "fix": FIX,
    "refactor": REFACTOR,
    "long": LONG,
    "logs": READING_LOGS,
    "before-break": BEFORE_THE_BREAK,
    "after-break": AFTER_THE_BREAK,
    "servers": SERVERS,
    "no-servers": NO_SERVERS,
}


def answers(name: str) -> Iterable[Answer]:
    """Yield the answers of a trajectory: its calls, and a word at the end."""
    for step, calls in enumerate(TRAJECTORIES[name]):
        made = (Call(tool, json.dumps(given), f"call_{name}_{step}_{n}") for n, (tool, given) in enumerate(calls))
        yield Answer(calls=tuple(made))
    yield Answer(text="Done.")
