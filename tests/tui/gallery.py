"""Every kind of item in every state, for tests and pictures: `python -m
tests.tui.picture --help`.
"""

from pathlib import Path

from codeloop.kit.text.diff import make_unified_diff
from codeloop.schema.errors import APIError, APIErrorData, ErrorText, MessageAbortedError
from codeloop.schema.part import ToolPart
from codeloop.tui.state.conversation_items import (
    Item,
    NoticeItem,
    SubagentSummary,
    SummaryItem,
    ToolItem,
)
from tests.tui.parts import (
    DIRECTORY,
    answer,
    done,
    end,
    failed,
    file,
    pending,
    prompt,
    running,
    text,
    thought,
)

BEFORE = """import decimal

def total(cart, discount):
    # Sum first, the discount comes last.
    result = 0
    for item in cart.items:
        result += item.price * item.count
    return result


def tax(amount):
    return amount * 0.19
"""
AFTER = """import decimal

def total(cart, discount=0):
    # Sum first, the discount comes last.
    result = decimal.Decimal(0)
    for item in cart.items:
        result += item.price * item.count
    return result - result * discount


def tax(amount):
    return amount * 0.19
"""
DIFF = make_unified_diff(f"{DIRECTORY}/src/cart.py", BEFORE, AFTER).patch
NEW = make_unified_diff(
    f"{DIRECTORY}/docs/cart.md",
    "",
    "# Cart\n\n" + "\n".join(f"- point {at}" for at in range(1, 41)) + "\n",
).patch
TEST_RUN = (
    "\x1b[1m============ test session starts ============\x1b[0m\n"
    "collected 12 items\n\n"
    + "".join(
        f"tests/test_{name}.py \x1b[32m.\x1b[0m\x1b[32m.\x1b[0m\n"
        for name in ("a", "b", "c", "d", "e")
    )
    + "tests/test_cart.py \x1b[31mF\x1b[0m\x1b[32m.\x1b[0m\n\n"
    "\x1b[31mFAILED\x1b[0m tests/test_cart.py::\x1b[1mtest_discount\x1b[0m - assert 90 == 81\n"
    "\x1b[31m======= \x1b[1m1 failed\x1b[0m\x1b[31m, 11 passed in 0.31s =======\x1b[0m"
)
FAILED = "\n\n<shell_metadata>\nexit code 1\n</shell_metadata>"
GREP = (
    "3 matches in 2 files\nsrc/cart.py\n3: def total(cart, discount):\n9-     return result\n\n"
    "tests/test_cart.py\n7: def total"
)
HITS = {
    "matches": 3,
    "files": 2,
    "display": [
        {
            "path": "src/cart.py",
            "lines": [[3, True, "def total(cart, discount):"], [9, False, "    return result"]],
        },
        {"path": "tests/test_cart.py", "lines": [[7, True, "def total"]]},
    ],
}
TODOS = {
    "todos": [
        {"content": "Find out why the total is wrong", "status": "completed", "priority": "high"},
        {
            "content": "Apply the discount last, with decimals",
            "status": "in_progress",
            "priority": "high",
        },
        {"content": "Run the tests", "status": "pending", "priority": "medium"},
        {"content": "Rewrite everything", "status": "cancelled", "priority": "low"},
    ]
}
QUESTIONS = {
    "questions": [
        {"question": "Round half up or half even?", "header": "Rounding", "options": []},
        {"question": "Which currencies?", "header": "Currencies", "options": []},
    ]
}
READ = {
    "display": {
        "type": "file", "path": f"{DIRECTORY}/src/cart.py", "text": "def total(cart, discount):\n    return 0\n",
        "lineStart": 3, "lineEnd": 5, "totalLines": 60,
    }
}  # fmt: skip
LISTED = {
    "display": {
        "type": "directory",
        "path": DIRECTORY,
        "entries": ["a/", "b.py"],
        "totalEntries": 2,
    }
}


def _part(item: ToolItem) -> ToolPart:
    return item.part


CHILD = SubagentSummary(
    session_id="ses_child",
    title="Look for rounding",
    agent="explore",
    state="running",
    calls=(
        _part(done("grep", {"pattern": "round("})),
        _part(running("read", {"filePath": "src/money.py"})),
    ),
    steps=2,
)


def _wrong(line: int, message: str, severity: int = 1) -> dict[str, object]:
    place = {"line": line, "character": 4}
    return {
        "range": {"start": place, "end": place},
        "severity": severity,
        "message": message,
        "source": "pyright",
    }


WRONG = {
    f"{DIRECTORY}/src/cart.py": [
        _wrong(8, "Import “Decimal” is not accessed", 2),
        _wrong(3, "“Decimal” is not defined\nand its second line"),
        _wrong(
            5,
            'Operator "*=" not supported for types "float" and "Decimal" when expected type is "float"',
        ),
    ],
    "/elsewhere/in/a/folder/that/is/deep/below/test_cart.py": [
        _wrong(41, 'No parameter named "discount"')
    ],
}
EDIT = {"filePath": f"{DIRECTORY}/src/cart.py", "oldString": "a", "newString": "b"}
TASK = {"description": "Look for rounding", "prompt": "...", "subagent_type": "explore"}
REPORTED = "Rounding is done in three places."
REPORT = (
    f'<task id="ses_child" state="completed">\n<task_result>\n{REPORTED}\n</task_result>\n</task>'
)
BATCH = {
    "tool_calls": [
        {"tool": "read", "parameters": {"filePath": "src/cart.py"}},
        {"tool": "grep", "parameters": {"pattern": "total"}},
    ]
}
CALLS: dict[str, Item] = {
    "bash": done("bash", {"command": "git status --short"}, " M src/cart.py", {"output": " M src/cart.py", "exit": 0}),
    "bash-failed": done("bash", {"command": "pytest -q"}, TEST_RUN + FAILED, {"exit": 1, "duration": 2310}),
    "bash-open": done("bash", {"command": "pytest -q\necho done"}, TEST_RUN + FAILED, {"exit": 1}, is_open=True),
    "bash-running": running("bash", {"command": "pytest -q"}, {"output": TEST_RUN}, seconds=64),
    "bash-silent": done("bash", {"command": "true"}, "(no output, exit code 0)", {"output": "", "exit": 0}),
    "bash-background": done("bash", {"command": "npm run dev"}, "Started", {"id": "bash_1", "output": ""}),
    "bash-pending": pending("bash", raw='{"command": "pyt'),
    "bash-asking": running("bash", {"command": "rm -rf build"}, is_asking=True),
    "bash-denied": failed("bash", {"command": "rm -rf /"}, "Not allowed by the rule `rm *`.", {"denied": True}),
    "bash-interrupted": failed(
        "bash", {"command": "sleep 99"}, "Interrupted.", {"interrupted": True, "output": "tick\ntick"}
    ),
    "bash-output": done(
        "bash_output", {"id": "bash_1"}, "ready on :3000", {"status": "running", "output": "x"}, title="npm run dev"
    ),
    "bash-kill": done("bash_kill", {"id": "bash_1"}, "ended", {"status": "killed"}, title="npm run dev"),
    "read": done("read", {"filePath": f"{DIRECTORY}/src/cart.py", "offset": 3}, "...", READ),
    "read-open": done("read", {"filePath": f"{DIRECTORY}/src/cart.py", "offset": 3}, "...", READ, is_open=True),
    "read-folder": done("read", {"filePath": DIRECTORY}, "a/\nb.py", LISTED, is_open=True),
    "read-image": done("read", {"filePath": f"{DIRECTORY}/shot.png"}, "Image attached", attachments=[file("shot.png")]),
    "read-failed": failed("read", {"filePath": "src/card.py"}, "There is no file src/card.py."),
    "grep": done("grep", {"pattern": "total", "path": "src"}, GREP, HITS),
    "grep-open": done("grep", {"pattern": "total"}, GREP, HITS, is_open=True),
    "grep-nothing": done("grep", {"pattern": "totl"}, "No matches found", {"matches": 0}),
    "glob": done("glob", {"pattern": "**/*.py"}, "src/cart.py\nsrc/money.py", {"count": 2}),
    "list-open": done("list", {}, "./\n  src/\n    cart.py", {"count": 1}, is_open=True),
    "edit": done("edit", EDIT, "Edited", {"diff": DIFF}),
    "edit-wrong": done("edit", EDIT, "Edited", {"diff": DIFF, "diagnostics": WRONG}),
    "edit-pending": pending("edit", raw='{"filePath": "src/cart.py", "oldString": "a\\nb\\nc\\n'),
    "edit-asking": running("edit", EDIT, {"diff": DIFF}, is_asking=True),
    "edit-failed": failed("edit", EDIT, "The text to replace was not found in src/cart.py."),
    "write": done("write", {"filePath": f"{DIRECTORY}/docs/cart.md", "content": "x"}, "Created", {"diff": NEW}),
    "patch": done("apply_patch", {"patchText": "..."}, "M ...", {"diff": DIFF + NEW}),
    "todos": done("todowrite", TODOS, "4 todos", TODOS),
    "task-running": running("task", TASK, {"sessionId": "ses_child"}, seconds=12, child=CHILD),
    "task": done("task", TASK, REPORT, {"sessionId": "ses_child", "report": REPORTED}, ms=31_000),
    "task-output": done(
        "task_output",
        {"task_id": "ses_child"},
        REPORT,
        {"state": "completed", "report": REPORTED},
        title="Rounding",
    ),
    "question": done("question", QUESTIONS, "...", {"answers": [["Half even"], ["EUR", "USD"]]}),
    "question-asking": running("question", QUESTIONS, is_asking=True),
    "skill": done("skill", {"name": "release"}, "...", {"name": "release"}),
    "webfetch": done("webfetch", {"url": "https://example.org"}, "# Docs", {"status": 200, "bytes": 18_300}, ms=900),
    "websearch": done("websearch", {"query": "decimal rounding"}, "1. ...", {"results": 8}),
    "plan": done("plan_exit", {}, "Approved", {"answer": "Yes"}),
    "batch": done(
        "batch", BATCH, "...",
        {"details": [{"tool": "read", "ok": True, "title": "src/cart.py"}, {"tool": "grep", "ok": False, "title": ""}]},
        title="1 of 2 calls succeeded",
    ),
    "invalid": done("invalid", {"tool": "Bash", "error": "x"}, "There is no tool Bash. Did you mean bash?"),
    "mcp": done("linear_create_issue", {"title": "Totals are wrong", "labels": ["bug"]}, "Created LIN-12"),
    "mcp-running": running("linear_create_issue", {"title": "Totals are wrong"}),
    "mcp-failed": failed("linear_create_issue", {"title": "Totals are wrong"}, "The server answered 500."),
}  # fmt: skip
ITEMS: dict[str, Item] = {
    "prompt": prompt(
        text("Fix the failing test in `tests/test_cart.py` and tell me why it broke."),
        file("shot.png"),
    ),
    "thought": thought("I look at the test first.\nThen at the code."),
    "answer": answer((Path(__file__).parent / "render" / "sample.md").read_text()),
    "thought-open": thought("I look at the test first.\nThen at the code.", is_open=True),
    "thought-live": thought("I look at the test", seconds=None),
    **CALLS,
    "summary": SummaryItem("sum", "The cart was fixed."),
    "summary-open": SummaryItem("sum", "The cart was fixed.", is_open=True),
    "end": end(),
    "prompt-undone": prompt(text("Rewrite it in Rust."), is_undone=True),
    "end-aborted": end(error=MessageAbortedError(data=ErrorText(message="Aborted"))),
    "end-failed": end(
        error=APIError(
            data=APIErrorData(message="Overloaded (529)", is_retryable=True, status_code=529)
        )
    ),
    "notice": NoticeItem("note", "The session was shared.", "success"),
    "notice-error": NoticeItem("note", "The server can't be reached.", "error"),
}
