"""Of many alike messages the places stay, and the one that differs stays whole,
whatever program prints them.
"""

import pytest

from codeloop.workspace.process.condensed_output import condense_output

TSC = """src/jsx/part{n}.test.tsx({m},7): error TS2786: 'Component{n}' cannot be used as a JSX component.
  Its type '() => FunctionComponentResult{n}' is not a valid JSX element type.
    Type '() => FunctionComponentResult{n}' is not assignable to type '(props: any) => Promise<string> | null'.
      Its return type 'FunctionComponentResult{n}' is not a valid JSX element of the kind that is wanted here.
        Type 'string[]' is missing the following properties from type 'JSXNode': tag, props, key, isEscaped{n}"""
# A message of a program, of which there are two hundred, and one other.
OUTPUTS = {
    "tsc": (TSC, "src/jsx/dom/render.ts(287,13): error TS2322: Type 'Child[]' is not assignable to type 'Node'."),
    "tsc, pretty": (
        "src/part{n}.ts:{m}:7 - error TS2304: Cannot find name 'part{n}'.\n\n{m}   part{n}()\n    ~~~~~~\n",
        "src/b.ts:287:13 - error TS2322: Type 'Child[]' is not assignable to type 'Node'.",
    ),
    "mypy": (
        (
            'src/part{n}.py:{m}: error: Argument {n} to "f{n}" has the wrong type "int"; expected "str"  [arg-type]\n'
            'src/part{n}.py:{m}: note: See "f{n}" for what it takes'
        ),
        'src/b.py:7: error: Name "tax" is not defined  [name-defined]',
    ),
    "eslint": (
        "\n/home/me/shop/src/part{n}.js\n  {m}:7  error  'part{n}' is defined but never used  no-unused-vars",
        "\n/home/me/shop/src/b.js\n  7:1  error  'tax' is not defined  no-undef",
    ),
    "ruff": (
        (
            "PLR0917 Too many positional arguments ({n}/5)\n --> src/part{n}.py:{m}:5\n  |\n{m} | def part{n}(a, b):\n"
            "  |     ^^^^^^\n  |\n"
        ),
        "F821 Undefined name `tax`\n --> src/b.py:7:5\n  |\n7 | tax(1)\n  | ^^^\n  |\n",
    ),
    "ruff, concise": (
        "src/part{n}.py:{m}:5: PLR0917 Too many positional arguments ({n}/5)",
        "src/b.py:7:5: F821 Undefined name `tax`",
    ),
    "gcc": (
        (
            "src/part{n}.c: In function \u2018part{n}\u2019:\n"
            "src/part{n}.c:{m}:5: warning: \u2018old{n}\u2019 is deprecated [-Wdeprecated-declarations]\n"
            "   {m} |   old{n}();\n      |   ^~~~"
        ),
        "src/b.c: In function \u2018tax\u2019:\nsrc/b.c:7:5: error: \u2018rate\u2019 undeclared",
    ),
    "cargo": (
        (
            "warning: unused variable: `part{n}`\n  --> src/part{n}.rs:{m}:9\n   |\n{m} |     let part{n} = 1;\n"
            "   |         ^^^^^ help: if this is intentional, prefix it with an underscore: `_part{n}`\n   |\n"
        ),
        "error[E0425]: cannot find value `tax` in this scope\n --> src/b.rs:7:5\n  |\n7 |     tax\n  |     ^^^\n",
    ),
    "javac": (
        (
            "src/Part{n}.java:{m}: error: cannot find symbol\n        Old{n} part = new Part{n}();\n        ^\n"
            "  symbol:   class Old{n}\n  location: class Part{n}"
        ),
        "src/B.java:7: error: incompatible types: int cannot be converted to String",
    ),
    "maven": (
        "[ERROR] /home/me/shop/src/Part{n}.java:[{m},9] cannot find symbol",
        "[ERROR] /home/me/shop/src/B.java:[7,9] incompatible types: int cannot be converted to String",
    ),
    "go": ("./part{n}.go:{m}:2: undefined: old", "./b.go:7:2: missing return"),
    "FAILED": (
        "FAILED tests/test_part.py::test_part[{n}] - AssertionError: assert {n} == {m}",
        "FAILED tests/test_b.py::test_tax - KeyError: 'tax'",
    ),
    "deprecations": (
        (
            "# (node:104) [FSTDEP022] FastifyWarning: The router options for option{n} property access is deprecated. "
            'Please use "options.routerOptions" instead for accessing router options of the server.'
        ),
        "# (node:104) [DEP0005] DeprecationWarning: Buffer() is deprecated.",
    ),
    "DeprecationWarning": (
        (
            "  /home/me/shop/src/part{n}.py:{m}: DeprecationWarning: old_part{n} is gone in version 9: use 'part'\n"
            "    old_part()"
        ),
        "  /home/me/shop/src/b.py:7: SyntaxWarning: invalid escape sequence",
    ),
    "kotlinc": (
        "src/Part{n}.kt:{m}:5: error: unresolved reference: part{n}\n    part{n}()\n    ^",
        "src/B.kt:9:5: error: type mismatch: inferred type is String but Int was expected",
    ),
    "kotlinc 2": (
        "e: file:///home/me/shop/src/Part{n}.kt:{m}:5 Unresolved reference 'part{n}'.",
        "e: file:///home/me/shop/src/B.kt:9:5 Type mismatch: inferred type is String but Int was expected",
    ),
    "go vet": (
        "pkg/part{n}.go:{m}:2: undefined: part{n}",
        "pkg/b.go:9:2: result of fmt.Sprintf call not used",
    ),
    "phpstan": (
        (
            "\n  Line   src/Part{n}.php\n  :{m}   Method App\\Part{n}::f() has no return type specified.\n"
            "         \U0001faaa  missingType.return"
        ),
        "\n  Line   src/B.php\n  :9   Cannot call method tax() on null.\n [ERROR] Found 201 errors",
    ),
    "shellcheck": (
        (
            "In part{n}.sh line {m}:\necho $part\n     ^---^ SC2086 (info): Double quote to prevent globbing.\n\n"
            'Did you mean:\necho "$part"\n'
        ),
        "In b.sh line 9:\nif x\n^-- SC1046 (error): Couldn't find 'fi' for this 'if'.\n",
    ),
    "shellcheck, as gcc": (
        "part{n}.sh:{m}:6: note: Double quote to prevent globbing and word splitting. [SC2086]",
        "b.sh:9:1: error: Couldn't find 'fi' for this 'if'. [SC1046]",
    ),
    "pyright": (
        (
            '  /home/me/shop/src/part{n}.py:{m}:5 - error: Cannot access attribute "part{n}" for class "Shop"\n'
            '    Attribute "part{n}" is unknown (reportAttributeAccessIssue)'
        ),
        '  /home/me/shop/src/b.py:9:5 - error: Type "str" is not assignable to "int" (reportAssignmentType)',
    ),
    "ghc": (
        (
            "src/Part{n}.hs:{m}:5: error: [GHC-88464]\n    Variable not in scope: part{n}\n  |\n"
            "{m} | x = part{n}\n  |     ^^^\n"
        ),
        "src/B.hs:9:5: error: [GHC-83865]\n    Couldn't match expected type Int\n  |\n9 | z = 1\n  |     ^\n",
    ),
    "elixir": (
        (
            '    warning: variable "part{n}" is unused\n    \u2502\n {m} \u2502   part{n} = 1\n    \u2502\n'
            "    \u2514\u2500 lib/part{n}.ex:{m}:3: Shop.f/0\n"
        ),
        (
            '    error: undefined variable "tax"\n    \u2502\n  9 \u2502   tax\n    \u2502\n'
            "    \u2514\u2500 lib/b.ex:9:5: Shop.g/0\n"
        ),
    ),
    "dart": (
        "   info - lib/part{n}.dart:{m}:5 - Use 'const' with the constructor. - prefer_const_constructors",
        "  error - lib/b.dart:9:5 - A value of type 'String' can't be assigned to 'int'. - invalid_assignment",
    ),
    "gradle": (
        "/home/me/shop/Part{n}.java:{m}: warning: [deprecation] part{n}() in Shop has been deprecated",
        "/home/me/shop/B.java:9: warning: [removal] stop() in Thread has been deprecated and marked for removal",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_odd_one_stays_whole_among_two_hundred_alike(name: str) -> None:
    message, odd = OUTPUTS[name]
    alike = [message.format(n=n % 40, m=100 + n) for n in range(200)]
    printed = "\n".join([*alike[:150], odd, *alike[150:], ""])
    text, has_gaps = condense_output(printed)
    assert has_gaps
    assert odd.strip() in text
    assert all(each in text for each in alike[:2])
    assert len(text.encode()) < max(5_000, len(printed.encode()) / 6), len(text)
    if "m}" in message and name != "FAILED":
        assert all(str(100 + n) in text for n in range(200)), "the places stay"
    if name == "FAILED":
        assert all(f"test_part[{n}]" in text for n in range(40))


def test_eighty_kilobytes_of_one_kind_end_near_two_with_both_kinds_and_all_places() -> None:
    alike = [TSC.format(n=n % 12, m=100 + n) for n in range(230)]
    odd = OUTPUTS["tsc"][1]
    printed = "\n".join([*alike[:200], odd, *alike[200:], ""])
    text, _ = condense_output(printed)
    assert len(printed) > 80_000
    assert len(text) < 3_000
    assert odd in text
    assert all(str(100 + n) in text for n in range(230))
    assert "lines as above" not in text


@pytest.mark.parametrize(
    "printed",
    [
        "\n".join(f"src/part{n}.py:{n}:    import os, sys  # error {n}" for n in range(100)),
        "\n".join(f"error: row {n}" for n in range(300)),
        "\n".join(f"2026-11-29 05:{n % 60:02}:00 error: {n}" for n in range(200)),
    ],
    ids=["grep", "no place", "log"],
)
def test_what_only_looks_alike_stays(printed: str) -> None:
    assert condense_output(printed) == (printed, False)


def test_a_line_of_megabytes_is_cut() -> None:
    text, has_gaps = condense_output(f"before\n{'x' * 3_000_000}\nafter\n")
    assert has_gaps
    assert len(text) < 2_200
    assert text.startswith("before\nxxx")
    assert "2998000 characters of this line" in text
    assert text.endswith("\nafter\n")
