"""Recorded trajectories: the calls of a model, step by step, in a project that is made for them,
always the same.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.answers import Answer, Call

MODULE_COUNT = 12
LOG_COUNT = 4
_MODULE_LINES = 130
_LOG_LINES = 900

StepCalls = tuple[tuple[str, Mapping[str, object]], ...]
"""The calls of one step: tools and their arguments."""


def _make_module(number: int) -> str:
    """Return the text of a module; each of its lines with a sum is unique,
    so that an edit can name it.
    """
    rows = [f'"""Part {number} of the shop."""', "", "RATE = 3", ""]
    for line in range(_MODULE_LINES // 5):
        rows += [f"def part_{number}_{line}(amount: int) -> int:", f'    """Return step {line}."""']
        rows += [f"    return amount * RATE + {(number + 1) * 1000 + line}", "", ""]
    return "\n".join(rows)


def make_project(folder: Path) -> None:
    """Write the files that the trajectories read, change and run."""
    (folder / "shop").mkdir()
    for number in range(MODULE_COUNT):
        (folder / "shop" / f"part_{number}.py").write_text(_make_module(number))
    for number in range(LOG_COUNT):
        rows = (
            f"{line:05} build {number}: compiled unit {line * 7919 % 1000:03} of target"
            for line in range(_LOG_LINES)
        )
        (folder / f"build-{number}.log").write_text("\n".join(rows) + "\n")
    names = (
        f"echo 'test_part_{number % MODULE_COUNT}_{number}: checked in {number % 7} ms'"
        for number in range(80)
    )
    (folder / "check.sh").write_text("\n".join(names) + "\n")
    (folder / "Makefile").write_text("test:\n\tsh check.sh\n\nlint:\n\ttrue\n")
    (folder / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\n\n[tool.ruff]\n\n[tool.mypy]\n"
    )


RUN_CHECK: StepCalls = (("bash", {"command": "sh check.sh", "description": "Runs the tests"}),)


def _read_modules(*numbers: int) -> StepCalls:
    return tuple(("read", {"filePath": f"shop/part_{number}.py"}) for number in numbers)


def _edit_module(number: int, line: int) -> StepCalls:
    old = f"return amount * RATE + {(number + 1) * 1000 + line}"
    arguments = {"filePath": f"shop/part_{number}.py", "oldString": old, "newString": f"{old} - 1"}
    return (("edit", arguments),)


def _show_log(number: int) -> StepCalls:
    return (("bash", {"command": f"cat build-{number}.log", "description": "Shows a log"}),)


FIX_STEPS: tuple[StepCalls, ...] = (
    (("grep", {"pattern": "def part_3_7"}), ("glob", {"pattern": "*.toml"})),
    _read_modules(3),
    RUN_CHECK,
    _edit_module(3, 7),
    RUN_CHECK,
)
REFACTOR_STEPS: tuple[StepCalls, ...] = (
    *(
        calls
        for number in range(MODULE_COUNT)
        for calls in (_read_modules(number), _edit_module(number, 1), RUN_CHECK)
    ),
    _read_modules(0, 1),
    _edit_module(0, 2),
    RUN_CHECK,
)
LONG_STEPS: tuple[StepCalls, ...] = tuple(
    calls
    for turn in range(24)
    for calls in (_read_modules(turn % 4), _edit_module(turn % 4, turn // 4), RUN_CHECK)
)
"""Four files are read, changed and checked in turn, so that later outputs repeat earlier ones."""
LOG_STEPS: tuple[StepCalls, ...] = (
    *(_show_log(number) for number in range(LOG_COUNT)),
    _edit_module(5, 5),
    RUN_CHECK,
    _show_log(0),
)
STEPS_BEFORE_BREAK: tuple[StepCalls, ...] = (
    _read_modules(0, 1),
    RUN_CHECK,
    _edit_module(0, 1),
    RUN_CHECK,
    _read_modules(2, 3),
    _edit_module(2, 1),
    RUN_CHECK,
    _edit_module(3, 1),
    _read_modules(2),
    RUN_CHECK,
)
STEPS_AFTER_BREAK: tuple[StepCalls, ...] = (
    RUN_CHECK,
    _read_modules(4),
    _edit_module(4, 1),
    _edit_module(1, 2),
    RUN_CHECK,
)

CLOCK_FILE = "clock"
"""The file of seconds by which the clock of a session is ahead of the machine's."""
NINE_MINUTES = "543"
"""The seconds of a long command, as it adds them to the clock."""
LONG_COMMAND = f"echo $(($(cat {CLOCK_FILE}) + {NINE_MINUTES})) > {CLOCK_FILE}"
"""What stands for a command that takes so long."""
PREFIX_TRAJECTORIES: dict[str, tuple[StepCalls, ...]] = {
    "prefix-start": (
        _read_modules(0, 1),
        RUN_CHECK,
        _edit_module(0, 1),
        RUN_CHECK,
        _read_modules(0),
        _edit_module(1, 1),
        _show_log(0),
        RUN_CHECK,
    ),
    "prefix-resume": (RUN_CHECK, _read_modules(2), _edit_module(2, 1), RUN_CHECK),
    "prefix-pause": (_read_modules(1), _edit_module(1, 2), RUN_CHECK, _read_modules(1)),
    "prefix-command": (
        _read_modules(3),
        (("bash", {"command": LONG_COMMAND, "description": "Builds"}),),
        RUN_CHECK,
    ),
    "prefix-plan": (_read_modules(4), (("grep", {"pattern": "def part_4_1"}),)),
    "prefix-build": (_edit_module(4, 1), RUN_CHECK),
    "prefix-fork": (_read_modules(5),),
}
"""The turns of a session that goes on in other ways: 31 requests with the words at their ends."""

RUN_SHOP_CHECK: StepCalls = (
    ("bash", {"command": "python3 check.py", "description": "Runs the tests"}),
)
READ_INVOICE: StepCalls = (("read", {"filePath": "shop/invoice.py"}),)
_ROUNDED_FUNCTION = "def rounded(paper: Invoice) -> int:\n    return up(paper.amount_due())\n"


def _edit_shop_file(name: str, old: str, new: str) -> StepCalls:
    return (("edit", {"filePath": f"shop/{name}.py", "oldString": old, "newString": new}),)


def _rename_in_module(number: int) -> StepCalls:
    old = f"return paper.total() + {number}"
    return _edit_shop_file(f"part_{number}", old, old.replace("total", "amount_due"))


ADD_ROUNDED = _edit_shop_file(
    "part_2", "paper.amount_due() + 2\n", f"paper.amount_due() + 2\n\n\n{_ROUNDED_FUNCTION}"
)
ADD_IMPORT = _edit_shop_file(
    "part_2", "import Invoice\n", "import Invoice\nfrom shop.rounding import up\n"
)
RENAME_TOTAL: StepCalls = (
    (
        "lsp",
        {
            "operation": "rename",
            "filePath": "shop/invoice.py:5",
            "symbol": "total",
            "newName": "amount_due",
        },
    ),
)
SERVER_STEPS: tuple[StepCalls, ...] = (
    READ_INVOICE,
    RENAME_TOTAL,
    ADD_ROUNDED,
    ADD_IMPORT,
    RUN_SHOP_CHECK,
)
"""A method is renamed, then used by a new function, whose import is forgotten at first."""
NO_SERVER_STEPS: tuple[StepCalls, ...] = (
    READ_INVOICE,
    (("grep", {"pattern": r"\btotal\("}), ("grep", {"pattern": "import Invoice"})),
    (
        *_edit_shop_file("invoice", "def total", "def amount_due"),
        *(call for number in range(0, MODULE_COUNT, 2) for call in _rename_in_module(number)),
    ),
    ADD_ROUNDED,
    RUN_SHOP_CHECK,
    ADD_IMPORT,
    RUN_SHOP_CHECK,
)
"""The same without servers: the imports show which of two methods a module uses,
the tests show what is missing.
"""

TRAJECTORIES: dict[str, tuple[StepCalls, ...]] = {
    "fix": FIX_STEPS,
    "refactor": REFACTOR_STEPS,
    "long": LONG_STEPS,
    "logs": LOG_STEPS,
    "before-break": STEPS_BEFORE_BREAK,
    "after-break": STEPS_AFTER_BREAK,
    "servers": SERVER_STEPS,
    "no-servers": NO_SERVER_STEPS,
    **PREFIX_TRAJECTORIES,
}


def make_answers(name: str) -> Iterable[Answer]:
    """Yield the answers of a trajectory: the calls of each step, then a word."""
    for step, calls in enumerate(TRAJECTORIES[name]):
        scripted = [
            Call(tool, json.dumps(arguments), f"call_{name}_{step}_{number}")
            for number, (tool, arguments) in enumerate(calls)
        ]
        yield Answer(calls=tuple(scripted))
    yield Answer(text="Done.")
