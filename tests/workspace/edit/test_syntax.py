"""What an edit broke is found where a parser is there anyway, and only that."""

import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.workspace.edit.syntax import SyntaxProblem, find_syntax_problem

CLASS = "class A {\n  f() {\n    g()\n  }\n  h() {\n    g()\n  }\n}\n"


@pytest.mark.parametrize(
    ("name", "before", "after", "line", "reason"),
    [
        ("a.json", '{"a": 1}', '{\n"a" 1\n}', 2, "Expecting ':' delimiter"),
        ("package.json", "", '{"a" 1}', 1, "Expecting ':' delimiter"),
        ("a.toml", "a = 1\n", "a = 1\nb = [1\n", 3, "Unclosed array"),
        ("a.toml", "a = 1\n", "a = 1\na = 2\n", 2, "Cannot overwrite a value"),
        ("a.yaml", "a: 1\n", "a: 1\n b: 2\n", 2, "mapping values are not allowed"),
        ("a.yml", "a: 1\n", "a: [1\nb: 2\n", 2, "did not find expected"),
        ("a.py", "x = 1\n", "x = (1\n", 1, "'(' was never closed (as Python 3."),
        ("a.py", "", "def f():\nreturn 1\n", 2, "expected an indented block"),
        ("a.pyi", "x = 1\n", "if x\n", 1, "expected ':'"),
        ("a.js", CLASS, CLASS.replace("g()\n  }\n", "g()\n", 1), 2, "`{` is never closed"),
        (
            "a.ts",
            CLASS,
            CLASS.replace("g()\n  }\n", "g()\n    }\n  }\n", 1),
            4,
            "`}` closes nothing",
        ),
        (
            "a.js",
            CLASS,
            CLASS.replace("g()", "g(", 1),
            3,
            "`(` is not closed before the `}` of line 4",
        ),
        ("a.js", CLASS, CLASS.replace("g()", "g)", 1), 3, "`)` closes nothing"),
        ("a.tsx", "const a = <p>x</p>\n", "const a = <p>x<\n", 1, ""),
        (
            "a.jsx",
            "",
            "const a = = 1\n",
            1,
            "`=` was not expected (as tree-sitter's grammar of javascript reads it)",
        ),
        (
            "a.go",
            "package a\n",
            "package a\n\nfunc f() {\n\tx := [1\n}\n",
            4,
            "`[` is not closed before the `}` of line 5",
        ),
        ("a.rs", "fn f() {}\n", "<<<<<<< ours\nfn f() {}\n", 1, "`<<<<<<< ours` was not expected"),
        ("a.java", "class A {}\n", "class A { int x = 1 }\n", 1, "`;` is missing"),
        (
            "a.c",
            "int f(void) { return 1; }\n",
            "int f(void) { return g(1; }\n",
            1,
            "`(` is not closed before",
        ),
        ("a.hpp", "class A {};\n", "class A {\n", 1, "`{` is never closed"),
        ("a.rb", "def f\n  1\nend\n", "def f\n  1\n", 1, "`def f` was not expected"),
        (
            "a.php",
            "<?php\nf(1);\n",
            "<?php\nf([1);\n",
            2,
            "`[` is not closed before the `)` of line 2",
        ),
        (
            "a.sh",
            "if a; then b; fi\n",
            "if a; then b\n",
            1,
            "`fi` is missing (as tree-sitter's grammar of bash reads it)",
        ),
        (
            "a.js",
            "const a = {x: {}}\n",
            "f({a: {{b: 1}})\n",
            1,
            "`{` is not closed before the `)` of line 1",
        ),
    ],
)
def test_what_a_grammar_does_not_take_any_more_is_named(
    name: str, before: str, after: str, line: int, reason: str
) -> None:
    found = find_syntax_problem(Path(name), before, after)
    assert found is not None
    assert (found.line, found.reason[: len(reason)]) == (line, reason)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.js", "const o = {\n  a: 1\n  b: 2,\n};\nf(`${x}`);\nr[`a ${g[`b ${x}`]} (`];\n"),
        ("a.ts", "const o = {\n  a: 1\n  b: 2,\n};\nf([`a ${x} b`]);\ntype T = {| a: 1 |};\n"),
        ("a.tsx", "const o = {\n  a: 1\n  b: 2,\n};\nconst e = <a b={`${x}`}>{y}</a>;\n"),
        (
            "a.rb",
            'def a\n  1\n  x = = 1\nend\nf("a #{x} b", %w[a b], %i{c d}, /#{x}/)\ndef []=(x, y); end\n',
        ),
        ("a.java", 'class A {\n  int y;\n  int x = = 1;\n  String s = STR."a \\{x} b";\n}\n'),
        ("a.php", '<?php\n\n$x = = 1;\n#[B([1])]\nfunction f() { return "a {$x} ${x}"; }\n'),
        (
            "a.rs",
            "fn f<'a>(x: &'a str) {\n  let c = '(';\n  let x = = 1;\n  let s = r#\"( {\"#;\n}\n",
        ),
        ("a.go", "package a\n\nvar x = = 1\nvar s = `( {`\n"),
        ("a.cpp", "[[nodiscard]]\nint f() {\n  return a[b[0]]; }\nint g() { f(; }\n"),
    ],
)
def test_an_interpolation_and_other_joined_brackets_pair(name: str, text: str) -> None:
    found = find_syntax_problem(Path(name), "", text)
    assert found is not None
    is_bracket = name == "a.cpp"
    assert found.line == (4 if is_bracket else 3)
    assert is_bracket or "clos" not in found.reason


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.js", "f(`a ${g(x} b`)\n", "`(` is not closed before the `}` of line 1"),
        ("a.ts", "f(`a ${x b`)\n", "`${` is "),
        ("a.rb", 'f("a #{[x} b")\n', "`[` is not closed before the `}` of line 1"),
    ],
)
def test_a_bracket_in_an_interpolation_is_named(name: str, text: str, reason: str) -> None:
    found = find_syntax_problem(Path(name), "", text)
    assert found is not None
    assert found.reason[: len(reason)] == reason


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.ts", "", "export type * from './a'\n"),
        ("a.go", "package a\n", "package a\ntype A interface { ~int }"),
        ("a.c", "int x;\n", "EXPORT(int) f(void);\nFOO\nint y;\n"),
        ("a.h", "int x;\n", "NAMESPACE_BEGIN\nnamespace detail {\n}\n"),
        ("a.sh", "a\n", "case $x in\n  a) b ;;\n  *) c ;;\nesac\n"),
        ("a.rs", "fn f() {{\n", "fn f() {{{\n"),
        ("a.js", "", "<% if (a) { %>\n"),
        ("a.js", "f()\n", "f(`${a}`, /[(]/, '{', <p style={{a: 1}} />) // (\n"),
        ("large.js", "", "(" * 500_001),
        ("deep.js", "", "(" * 100_000),
        ("a.zsh", "", "{"),
    ],
)
def test_what_a_grammar_takes_or_can_not_know_is_no_news(
    name: str, before: str, after: str
) -> None:
    found = find_syntax_problem(Path(name), before, after)
    assert found is None or not found.is_new or name == "deep.js"


@pytest.mark.slow
def test_a_grammar_is_loaded_by_the_first_edit_of_its_language() -> None:
    program = (
        "import sys, pathlib; from codeloop.workspace.edit.syntax import find_syntax_problem as f; "
    )
    program += "n = lambda: sorted(m for m in sys.modules if m.startswith('tree_sitter') and '.' not in m); "
    program += "f(pathlib.Path('a.py'), '', '1'); print(*n()); f(pathlib.Path('a.go'), '', '1'); print(*n())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\ntree_sitter tree_sitter_go\n"


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
def test_what_is_right_or_was_wrong_before_or_is_not_known_is_not(
    name: str, before: str, after: str
) -> None:
    found = find_syntax_problem(Path(name), before, after)
    assert (
        found is None
        or not found.is_new
        or (name.startswith("deep") and isinstance(found, SyntaxProblem))
    )


def test_nothing_is_printed_of_warnings() -> None:
    program = (
        "import sys, pathlib; from codeloop.workspace.edit.syntax import find_syntax_problem as f; "
    )
    program += r"print(f(pathlib.Path('a.py'), '', 'x = \'\\d\'; assert (1, 2)\n'))"
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("None\n", "")
