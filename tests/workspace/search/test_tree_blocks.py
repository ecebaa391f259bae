"""What layout finds of a program ends where its grammar says,
and what stands in strings is none of it.
"""

import pytest

from codeloop.workspace.search.code_blocks import list_blocks, list_exact_blocks

GO = """package a

func script(w io.Writer) {
	write(`
function __debug
{
}
`)
	done()
}

func late() { type key struct{}; use(key{}) }
"""
RUST = 'fn text() -> &\'static str {\n    "\nfn main() {\n}\n"\n}\n\nfn late() {}\n'
C = """typedef struct point {
  int x;
} point;

char * find(struct point *at) {
  struct point *next;
#if A
  go();
#endif
}
"""
RUBY = "class Streaming\n  def keep(a,\n           b)\n    x = <<~END\ndef not_this\n    END\n  end\nend\n"
PHP = """<?php
final class Utils
{
    public static function f(): int
    {
        return <<<A
function no() {
A;
    }
}
"""


@pytest.mark.parametrize(
    ("suffix", "text", "expected"),
    [
        (".go", GO, ["script 3-10", "late 12-12"]),
        (".rs", RUST, ["text 1-6", "late 8-8"]),
        (".c", C, ["point 1-3", "find 5-10"]),
        (".rb", RUBY, ["Streaming 1-8", "Streaming.keep 2-7"]),
        (".php", PHP, ["Utils 2-10", "Utils.f 4-9"]),
        (
            ".ts",
            "export const f: Of<A> = async (a) => {\n  return `\nfunction no() {`\n}\n",
            ["f 1-4"],
        ),
        (".py", "def f():\n    return '''\ndef no():\n'''\n", ["f 1-4"]),
        (".kt", "fun f() {\n    g()\n}\n", ["f 1-3"]),
    ],
)
def test_blocks_end_where_the_grammar_says(suffix: str, text: str, expected: list[str]) -> None:
    assert [
        f"{each.name} {each.first_line}-{each.last_line}"
        for each in list_exact_blocks(text, suffix)
    ] == expected


@pytest.mark.parametrize("text", ["func f() {\n\tg(\n", "", "func a() {\n}\n\x0c\nfunc b() {}\r\n"])
def test_lines_are_counted_alike_by_layout_and_grammar(text: str) -> None:
    found = list_exact_blocks(text, ".go")
    assert found == list_blocks(text, ".go")
    assert all(
        text.split("\n")[each.first_line - 1].startswith(f"func {each.name}(") for each in found
    )
