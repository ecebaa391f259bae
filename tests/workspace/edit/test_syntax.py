"""What an edit broke is found where a parser is there anyway, and only that."""

import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.workspace.edit.syntax import SyntaxProblem, find_new_problem


@pytest.mark.parametrize(
    ("name", "before", "after", "line", "reason"),
    [
        ("a.json", '{"a": 1}', '{\n"a": 1,\n}', 3, "Expecting property name"),
        ("package.json", "", '{"a" 1}', 1, "Expecting ':' delimiter"),
        ("a.toml", "a = 1\n", "a = 1\nb = [1\n", 3, "Unclosed array"),
        ("a.toml", "a = 1\n", "a = 1\na = 2\n", 2, "Cannot overwrite a value"),
        ("a.yaml", "a: 1\n", "a: 1\n b: 2\n", 2, "mapping values are not allowed"),
        ("a.yml", "a: 1\n", "a: [1\nb: 2\n", 2, "did not find expected"),
        ("a.py", "x = 1\n", "x = (1\n", 1, "'(' was never closed (as Python 3."),
        ("a.py", "", "def f():\nreturn 1\n", 2, "expected an indented block"),
        ("a.pyi", "x = 1\n", "if x\n", 1, "expected ':'"),
    ],
)
def test_what_can_not_be_parsed_any_more_is_named(name: str, before: str, after: str, line: int, reason: str) -> None:
    found = find_new_problem(Path(name), before, after)
    assert found is not None
    assert (found.line, found.reason[: len(reason)]) == (line, reason)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.json", '{"a": 1}', '{"a": 2}'),
        ("a.json", "{,}", "{,,}"),
        ("tsconfig.build.json", "", "{ // why\n}"),
        ("a.jsonc", "", "{ // why\n}"),
        ("deploy.yaml", "", "a: {{ .Values.a }}\n"),
        ("many.yaml", "a: 1\n", "a: 1\n---\n- !custom x\n- &b 1\n- *b\n"),
        ("old.py", "print 'a'\n", "print 'b'\n"),
        ("template.py", "", "{% if a %}\nx = 1\n"),
        ("deep.py", "", "(" * 5_000),
        ("deep.json", "", "[" * 200_000),
        ("a.txt", "", "{"),
        ("a.py", "x = 1\n", "x = '\\d'\n"),
    ],
)
def test_what_is_right_or_was_wrong_before_or_is_not_known_is_not(name: str, before: str, after: str) -> None:
    found = find_new_problem(Path(name), before, after)
    assert found is None or (name.startswith("deep") and isinstance(found, SyntaxProblem))


def test_nothing_is_printed_of_warnings() -> None:
    program = "import sys, pathlib; from codeloop.workspace.edit.syntax import find_new_problem as f; "
    program += r"print(f(pathlib.Path('a.py'), '', 'x = \'\\d\'; assert (1, 2)\n'))"
    done = subprocess.run([sys.executable, "-W", "default", "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("None\n", "")
