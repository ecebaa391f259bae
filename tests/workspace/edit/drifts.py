"""The table of drifted edits: (name, file, oldString, newString, expected file);
None: the edit must be refused.
"""

from collections.abc import Iterator

Case = tuple[str, str, str, str, str | None]

PY = (
    "class A:\n    def f(self, x):\n        if x:\n            return 1\n"
    "        return 2\n\n    def g(self):\n        return 3\n"
)
TABS = "func f(x int) int {\n\tif x > 0 {\n\t\treturn 1\n\t}\n\treturn 2\n}\n"
JS = 'const a = {\n  name: "x",\n  size: 10,\n};\n\nfunction go(list) {\n  return list.map((i) => i * 2);\n}\n'
COMMENT = (
    "def load(path):\n    # Opens the file and reads all of its lines\n    with open(path) as file:\n"
    "        return file.readlines()\n\nprint(load('a'))\n"
)
TWINS = "def a():\n    log('start')\n    return 1\n\ndef b():\n    log('start')\n    return 1\n"
LONG = "".join(f"    step_{n} = compute({n}, mode='fast')\n" for n in range(12))


def swap(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, (old, text)
    return text.replace(old, new)


EXACT: list[Case] = [
    ("one word", PY, "return 3", "return 4", swap(PY, "return 3", "return 4")),
    (
        "several lines",
        PY,
        "        if x:\n            return 1\n",
        "        if not x:\n            return 1\n",
        swap(PY, "if x", "if not x"),
    ),
    ("a line removed", PY, "            return 1\n", "", swap(PY, "            return 1\n", "")),
    ("the last line", JS, "}\n", "}\n// end\n", None),
    ("inside a line", JS, "i * 2", "i * 3", swap(JS, "i * 2", "i * 3")),
    ("the whole file", "a\nb\n", "a\nb\n", "c\n", "c\n"),
    ("no final newline", "a\nb", "b", "c", "a\nc"),
    ("a line added below", "a\nb\n", "a\n", "a\nx\n", "a\nx\nb\n"),
    ("CRLF in the file only", "a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\nc\r\n"),
    ("CRLF in the call only", "a\nb\nc\n", "a\r\nb", "a\r\nx\r\nb", "a\nx\nb\nc\n"),
    (
        "mixed line ends stay",
        "a\r\nb\nc\r\nd\n",
        "a\nb\nc\nd",
        "a\nb\nX\nc\nd",
        "a\r\nb\nX\r\nc\r\nd\n",
    ),
    ("a new line takes the line end beside it", "a\nb\r\nc\r\n", "b", "b\nx", "a\nb\r\nx\r\nc\r\n"),
    (
        "text with backslashes",
        'print("a\\n")\n',
        'print("a\\n")',
        'print("b\\n")',
        'print("b\\n")\n',
    ),
    ("a regex's characters", "x = [a-z]+(.*)$\n", "[a-z]+(.*)$", "[0-9]*", "x = [0-9]*\n"),
    ("not ASCII", "grüße = '中文'\n", "'中文'", "'日本'", "grüße = '日本'\n"),
]
EXACT[3] = ("the last lines", JS, "i * 2);\n}\n", "i * 2);\n}\n// end\n", JS + "// end\n")

INDENTED: list[Case] = [
    (
        "no indentation",
        PY,
        "def g(self):\n    return 3",
        "def g(self):\n    return 4",
        swap(PY, "return 3", "return 4"),
    ),
    (
        "no indentation, a line more",
        PY,
        "def g(self):\n    return 3",
        "def g(self):\n    y = 1\n    return y",
        swap(PY, "        return 3", "        y = 1\n        return y"),
    ),
    (
        "too much indentation",
        PY,
        "            def g(self):\n                return 3",
        "            def g(self):\n                return 4",
        swap(PY, "return 3", "return 4"),
    ),
    (
        "two blanks for four",
        PY,
        "  if x:\n    return 1\n  return 2",
        "  if x:\n    return 7\n  return 2",
        swap(PY, "return 1", "return 7"),
    ),
    (
        "two blanks for four, deeper",
        PY,
        "def f(self, x):\n  if x:\n    return 1",
        "def f(self, x):\n  if x:\n    if y:\n      return 0\n    return 1",
        swap(
            PY,
            "            return 1",
            "            if y:\n                return 0\n            return 1",
        ),
    ),
    (
        "blanks for tabs",
        TABS,
        "    if x > 0 {\n        return 1\n    }",
        "    if x > 1 {\n        return 1\n    }",
        swap(TABS, "x > 0", "x > 1"),
    ),
    (
        "blanks for tabs, deeper",
        TABS,
        "    if x > 0 {\n        return 1\n    }",
        "    if x > 0 {\n        if y {\n            return 3\n        }\n        return 1\n    }",
        swap(TABS, "\t\treturn 1", "\t\tif y {\n\t\t\treturn 3\n\t\t}\n\t\treturn 1"),
    ),
    (
        "two blanks for a tab",
        TABS,
        "  if x > 0 {\n    return 1\n  }",
        "  if x > 0 {\n    return 9\n  }",
        swap(TABS, "return 1", "return 9"),
    ),
    (
        "tabs for blanks",
        PY,
        "\tdef g(self):\n\t\treturn 3",
        "\tdef g(self):\n\t\tif z:\n\t\t\treturn 4\n\t\treturn 3",
        swap(PY, "        return 3", "        if z:\n            return 4\n        return 3"),
    ),
    ("tabs for blanks, one line", JS, "\tsize: 10,", "\tsize: 11,", swap(JS, "10", "11")),
    (
        "only the first line without",
        PY,
        "if x:\n            return 1",
        "if x:\n            return 5",
        swap(PY, "return 1", "return 5"),
    ),
    (
        "the first line flush",
        TABS,
        "if x > 0 {\n\t\treturn 1\n\t}",
        "if x > 9 {\n\t\treturn 1\n\t}",
        swap(TABS, "x > 0", "x > 9"),
    ),
    (
        "blank lines with blanks",
        PY,
        "        return 2\n    \n    def g(self):",
        "        return 20\n    \n    def g(self):",
        swap(PY, "return 2", "return 20"),
    ),
    (
        "an outer line added",
        PY,
        "    if x:\n        return 1",
        "    if x:\n        return 1\n    z = 0",
        swap(PY, "            return 1\n", "            return 1\n        z = 0\n"),
    ),
    (
        "one line, wrong indentation",
        PY,
        "  return 3",
        "  return 33",
        swap(PY, "return 3", "return 33"),
    ),
]
TRIMMED: list[Case] = [
    (
        "trailing blanks in the call",
        PY,
        "        if x:   \n            return 1  ",
        "        if x:   \n            return 8",
        swap(PY, "return 1", "return 8"),
    ),
    (
        "trailing blanks in the file",
        "a = 1  \nb = 2\t\nc = 3\n",
        "a = 1\nb = 2\nc = 3",
        "a = 1\nb = 5\nc = 3",
        "a = 1  \nb = 5\nc = 3\n",
    ),
    (
        "trailing blanks on unchanged lines stay",
        "a  \nb  \nc  \n",
        "a\nb\nc",
        "a\nx\nc",
        "a  \nx\nc  \n",
    ),
    (
        "each line's indentation differs",
        "  a()\n    b()\n c()\n",
        "a()\nb()\nc()",
        "a()\nb()\nd()",
        "  a()\n    b()\n d()\n",
    ),
    (
        "a blank line before",
        PY,
        "\n\n        return 3\n",
        "\n\n        return 4\n",
        swap(PY, "return 3", "return 4"),
    ),
    (
        "a blank line after",
        PY,
        "        return 3\n\n\n",
        "        return 4\n\n\n",
        swap(PY, "return 3", "return 4"),
    ),
    ("blanks around one line", JS, "   size: 10,   ", "   size: 12,   ", swap(JS, "10", "12")),
    (
        "a newline around a word",
        "alpha beta gamma\n",
        "\nbeta\n",
        "\ndelta\n",
        "alpha delta gamma\n",
    ),
    ("not inside a word", "foobar\n", " foo ", " x ", None),
    ("a final newline that is not there", "a\nb", "b\n", "c\n", "a\nc"),
    ("a form feed stays", "a\x0c\nb = 1\n", "b  =  1", "b = 2", "a\x0c\nb = 2\n"),
]
SPACED: list[Case] = [
    ("no blanks around operators", "x = a + b\n", "x=a+b", "x = a - b", "x = a - b\n"),
    ("blanks around operators", "x=a+b\n", "x = a + b", "x=a-b", "x=a-b\n"),
    ("blanks after commas", "f(a,b,c)\n", "f(a, b, c)", "f(a, b)", "f(a, b)\n"),
    (
        "doubled blanks",
        "int   count   = 0;\n",
        "int count = 0;",
        "int count = 1;",
        "int count = 1;\n",
    ),
    (
        "inside a longer line",
        "if (a  &&  b) { go(); }\n",
        "a && b",
        "a || b",
        "if (a || b) { go(); }\n",
    ),
    (
        "several lines at once",
        JS,
        'const a = {\n  name:"x",\n  size:10,\n};',
        'const a = {\n  name:"x",\n  size:99,\n};',
        swap(JS, "size: 10", "size:99"),
    ),
    ("words do not run together", "ab = 1\n", "a b = 1", "c = 1", None),
    ("a word does not fall apart", "a b = 1\n", "ab = 1", "c = 1", None),
    (
        "aligned assignments",
        "a   = 1\nbb  = 2\nccc = 3\n",
        "a = 1\nbb = 2\nccc = 3",
        "a = 1\nbb = 5\nccc = 3",
        "a   = 1\nbb = 5\nccc = 3\n",
    ),
    (
        "curly double quotes",
        'say("hi")\n',
        "say(\u201chi\u201d)",
        "say(\u201cho\u201d)",
        'say("ho")\n',
    ),
    ("curly single quotes", "it = 'a'\n", "it = \u2018a\u2019", "it = \u2018b\u2019", "it = 'b'\n"),
    (
        "curly quotes in the file",
        "it\u2019s fine here\n",
        "it's fine here",
        "it's good here",
        "it's good here\n",
    ),
    ("a dash", "# one - two\n", "# one \u2013 two", "# one \u2013 three", "# one - three\n"),
    ("no-break blanks", "x = 1\n", "x\u00a0=\u00a01", "x = 2", "x = 2\n"),
    (
        "curly quotes over lines",
        'a = "1"\nb = "2"\n',
        "a = \u201c1\u201d\nb = \u201c2\u201d",
        "a = \u201c1\u201d\nb = \u201c3\u201d",
        'a = "1"\nb = "3"\n',
    ),
]
ESCAPED: list[Case] = [
    (
        "escaped newlines",
        PY,
        "def g(self):\\n        return 3",
        "def g(self):\\n        return 4",
        swap(PY, "return 3", "return 4"),
    ),
    ("escaped tabs", TABS, "\\tif x > 0 {", "\\tif x > 5 {", swap(TABS, "x > 0", "x > 5")),
    ("escaped quotes", 'a = "x"\n', 'a = \\"x\\"', 'a = \\"y\\"', 'a = "y"\n'),
    ("escaped single quotes", "a = 'x'\n", "a = \\'x\\'", "a = \\'y\\'", "a = 'y'\n"),
    (
        "doubled backslashes",
        "p = 'C:\\dir'\n",
        "p = 'C:\\\\dir'",
        "p = 'C:\\\\new'",
        "p = 'C:\\new'\n",
    ),
    ("an escaped dollar", "echo $HOME\n", "echo \\$HOME", "echo \\$PATH", "echo $PATH\n"),
    (
        "entities",
        "if a < b && c > d:\n",
        "if a &lt; b &amp;&amp; c &gt; d:",
        "if a &gt; b:",
        "if a > b:\n",
    ),
    ("quoted entities", 'x = "1"\n', "x = &quot;1&quot;", "x = &quot;2&quot;", 'x = "2"\n'),
    (
        "line numbers of read",
        "def f():\n    return 1\n",
        "1: def f():\n2:     return 1",
        "1: def f():\n2:     return 2",
        "def f():\n    return 2\n",
    ),
    (
        "line numbers with a bar",
        "a = 1\nb = 2\n",
        "  1| a = 1\n  2| b = 2",
        "  1| a = 1\n  2| b = 3",
        "a = 1\nb = 3\n",
    ),
    (
        "line numbers of grep, which has them on matches and where a block begins",
        "def f():\n    a = 1\n    return a\n",
        "7- def f():\n    a = 1\n9:     return a",
        "7- def f():\n    a = 1\n    b = 2\n9:     return b",
        "def f():\n    a = 1\n    b = 2\n    return b\n",
    ),
    (
        "line numbers in old only",
        "a = 1\nb = 2\n",
        "1: a = 1\n2: b = 2",
        "a = 1\nb = 3",
        "a = 1\nb = 3\n",
    ),
]
CHANGED: list[Case] = [
    (
        "a changed comment stays",
        COMMENT,
        (
            "def load(path):\n    # Opens a file and reads all of the lines\n"
            "    with open(path) as file:\n        return file.readlines()"
        ),
        (
            "def load(path):\n    # Opens a file and reads all of the lines\n"
            "    with open(path) as file:\n        return list(file)"
        ),
        swap(COMMENT, "file.readlines()", "list(file)"),
    ),
    (
        "a shortened comment stays",
        COMMENT,
        (
            "def load(path):\n    # Opens the file, reads its lines\n"
            "    with open(path) as file:\n        return file.readlines()"
        ),
        (
            "def load(path):\n    # Opens the file, reads its lines\n"
            "    with open(path, 'rb') as file:\n        return file.readlines()"
        ),
        swap(COMMENT, "open(path)", "open(path, 'rb')"),
    ),
    (
        "a forgotten line stays",
        LONG,
        "\n".join(LONG.split("\n")[0:6] + LONG.split("\n")[7:12]),
        "\n".join(["    first = 0", *LONG.split("\n")[1:6], *LONG.split("\n")[7:12]]),
        swap(LONG, "    step_0 = compute(0, mode='fast')", "    first = 0"),
    ),
    (
        "a changed first line",
        "# alpha beta gamma\na = 1\nb = 2\nc = 3\nd = 4\n",
        "# alpha beta gama\na = 1\nb = 2\nc = 3\nd = 4",
        "# alpha beta gama\na = 1\nb = 9\nc = 3\nd = 4",
        "# alpha beta gamma\na = 1\nb = 9\nc = 3\nd = 4\n",
    ),
    (
        "a changed last line",
        "first = 1\nb = 2\nc = 3\nd = 4\n# the end of it\n",
        "first = 1\nb = 2\nc = 3\nd = 4\n# the end of that",
        "first = 1\nb = 2\nc = 8\nd = 4\n# the end of that",
        "first = 1\nb = 2\nc = 8\nd = 4\n# the end of it\n",
    ),
    (
        "a typing error in a comment",
        "x = 1\n# calculates teh sum\ny = 2\nz = 3\n",
        "x = 1\n# calculates the sum\ny = 2",
        "x = 10\n# calculates the sum\ny = 2",
        "x = 10\n# calculates teh sum\ny = 2\nz = 3\n",
    ),
    (
        "what is changed must be alike",
        (
            "begin\nalpha = load('one', retries=3, verbose=True)\nsame line of some length here\n"
            "another line of some length here\nend\n"
        ),
        "begin\nzzz()\nsame line of some length here\nanother line of some length here\nend",
        "begin\nyyy()\nsame line of some length here\nanother line of some length here\nend",
        None,
    ),
    (
        "too different between the edges",
        "begin\none two three\nfour five six\nend\n",
        "begin\ncompletely\nother words\nend",
        "begin\nend",
        None,
    ),
]
BLOCK = "top\nbegin\n  alike middle line\nend\nbottom\n"
DRIFT = "begin\n  alike midle line\nend"
EDGES: list[Case] = [
    ("an alike block removed with its end", BLOCK, DRIFT + "\n", "", "top\nbottom\n"),
    ("an alike block removed without its end", BLOCK, DRIFT, "", "top\n\nbottom\n"),
    ("an alike block replaced", BLOCK, DRIFT + "\n", "new\n", "top\nnew\nbottom\n"),
    (
        "blank lines around an alike block",
        BLOCK,
        f"\n{DRIFT}\n\n",
        f"\n{DRIFT}!\n\n",
        BLOCK.replace("end", "end!"),
    ),
    (
        "a blank line before a shifted block",
        "a\n    x\n    y\nb\n",
        "\nx\ny\n",
        "\nx\nz\n",
        "a\n    x\n    z\nb\n",
    ),
    ("a shifted block removed", "a\n    x\n    y\nb\n", "x\ny\n", "", "a\nb\n"),
    ("the end of a file without a newline removed", "a\n    x\nb", "x\nb\n", "", "a\n"),
]
REFUSED: list[Case] = [
    ("two exact places", TWINS, "    log('start')\n    return 1", "    return 2", None),
    ("two places but for indentation", TWINS, "log('start')\nreturn 1", "return 2", None),
    ("two places but for blanks", TWINS, "log( 'start' )", "x", None),
    (
        "two alike blocks",
        "begin\naaaa bbbb cccc\nend\nbegin\naaaa bbbb cccd\nend\n",
        "begin\naaaa bbbb ccce\nend",
        "begin\nend",
        None,
    ),
    ("overlapping places", "aaa\n", "aa", "b", None),
    ("a closing brace", "{\n  }\n}\n", " } ", "]", None),
    ("nothing like it", PY, "completely unrelated text", "x", None),
    ("only blanks", PY, "   \n  ", "x", None),
    ("equal texts", PY, "return 3", "return 3", None),
    ("nothing to find", PY, "", "x", None),
    ("another case", PY, "RETURN 3", "x", None),
    ("another name", PY, "def h(self):", "def k(self):", None),
    ("another number", PY, "return 4", "return 5", None),
    (
        "a block of which half is gone",
        PY,
        "    def f(self, x):\n        nothing\n        of this\n        is there\n        return 2",
        "x",
        None,
    ),
    (
        "twins told apart by a line",
        TWINS,
        "def b():\n    log('start')\n    return 1",
        "def b():\n    return 2",
        swap(TWINS, "def b():\n    log('start')\n    return 1", "def b():\n    return 2"),
    ),
]


def every() -> Iterator[Case]:
    for group in (EXACT, INDENTED, TRIMMED, SPACED, ESCAPED, CHANGED, EDGES, REFUSED):
        yield from group
