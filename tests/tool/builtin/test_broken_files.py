"""A command that leaves a file with a syntax error that it had not before is told of it,
as an edit is.
"""

from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from tests.support.scripted_project import make_answer, make_call, open_scripted_project

FILES = {
    "lib/a.py": "def f():\n    return (1)\n",
    "lib/b.js": "f({\n  a: 1,\n  b: 2\n})\n",
    "lib/c.json": '{"a": 1,\n "b": 2}\n',
    "lib/d.go": "package d\n\nfunc D() {\n\tx(1)\n}\n",
    "lib/e.txt": "(1)\n",
    "lib/broken.py": "def (:\n    return (1)\n",
}
COMMANDS = {
    "sed -i": ("sed -i 's/)$//' lib/a.py", ["This broke the syntax of lib/a.py: line 2"]),
    "perl -i": ("perl -pi -e 's/1,//' lib/b.js", ["This broke the syntax of lib/b.js: line 3"]),
    "several": ("sed -i 's/1,/1/' lib/*.js lib/c.json", ["lib/b.js: line 3", "lib/c.json: line 2"]),
    "redirected": ("echo 'func D() {' >> lib/d.go", ["This broke the syntax of lib/d.go: line"]),
    "in a folder": ("cd lib && sed -i 's/}//' d.go", ["This broke the syntax of lib/d.go: line"]),
    "no code": ("sed -i 's/)$//' lib/e.txt", []),
    "still valid": ("sed -i 's/1/2/' lib/*.py lib/b.js", []),
    "broken before": ("sed -i 's/return/return return/' lib/broken.py", []),
    "removed": ("rm lib/a.py", []),
    "only read": ("cat lib/a.py", []),
}


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_command_that_breaks_a_file_is_told(tmp_path: Path, name: str) -> None:
    command, told = COMMANDS[name]
    async with open_scripted_project(
        tmp_path, [make_answer(make_call("bash", command=command)), ScriptedAnswer(text="Done.")]
    ) as it:
        for path, text in FILES.items():
            (it.work / path).parent.mkdir(exist_ok=True)
            (it.work / path).write_text(text)
        await it.prompt()
        (result,) = it.results()
    assert all(each in result for each in told), result
    assert result.count("This broke the syntax") == len(told)


async def test_what_a_command_broke_is_said_until_an_edit_repairs_it(tmp_path: Path) -> None:
    calls = [
        make_call("bash", command="sed -i 's/)$//' a.py"),
        make_call("edit", filePath="a.py", oldString="x = 1", newString="x = 2"),
        make_call("edit", filePath="a.py", oldString="(1", newString="(1)"),
    ]
    async with open_scripted_project(
        tmp_path, [*map(make_answer, calls), ScriptedAnswer(text="Done.")]
    ) as it:
        (it.work / "a.py").write_text("x = 1\n\n\ndef f():\n    return (1)\n")
        await it.prompt()
        results = it.results()
    assert "This broke the syntax of a.py: line 5" in results[0]
    assert "The syntax of a.py is still broken: line 5" in results[1]
    assert "syntax" not in results[2]
