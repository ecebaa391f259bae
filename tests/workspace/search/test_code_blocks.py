"""Blocks of texts in several languages: where each begins and ends, and how it is named."""

import time

import pytest

from codeloop.workspace.search.code_blocks import (
    find_blocks,
    find_enclosing_block,
    format_outline,
    list_blocks,
    match_blocks,
)

JAVA = """\
package x;

public class Shop<T> extends Base {
    private final int a = call(1);

    public Shop(int a) {
        this.a = a;
    }

    @Override
    public <K> List<K> find(String name, int count)
            throws IOException {
        for (int i = 0; i < 3; i++) {
            run(i);
        }
        return null;
    }
}
"""
C = """\
#include <stdio.h>

static int helper(int a,
                  int b)
{
#ifdef X
    return 1;
#endif
    return 2;
}

struct point {
    int x;
};

char *name_of(struct point *p) {
    if (p) {
        return "a";
    }
out:
    return 0;
}

int declared(int a);
"""
GO = """\
package main

type Server struct {
	name string
}

func (s *Server) Run(
	ctx context.Context,
) error {
	if x {
		return nil
	}
	return nil
}

func main() {
	fmt.Println("x")
}
"""
RUBY = """\
module Shop
  class Cart < Base
    def self.build(x)
      new(x)
    end

    def total?
      items.each do |i|
        i
      end
    rescue Foo
      0
    end
  end
end
"""
RUST = """\
use std::io;

pub struct Rule<'a> {
    name: &'a str,
}

impl<'a> Rule<'a> {
    pub fn new(name: &'a str) -> Self {
        Rule { name }
    }

    async fn run(&self)
    where
        Self: Sized,
    {
        todo()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn works() {
        assert!(true);
    }
}
"""
SHELL = """\
main() {
  echo x
}

function other {
  echo y
}
"""
TYPESCRIPT = """\
import x from "y";

export default class Widget<T> extends Base<T> {
  private count = 0;

  constructor(private readonly a: string) {
    super();
  }

  async render(a: number): Promise<void> {
    if (a) {
      await run(a);
    } else {
      stop();
    }
  }
}

export const f = async (a: string): Promise<X> => {
  return a;
};

describe("a", () => {
  it("renders", async () => {
    expect(1).toBe(1);
  });
});

interface Shape {
  size: number;
}
"""
MARKDOWN = """\
# One

## Two

```sh
# not a heading
```

## Three
text
"""
PYTHON = """\
@wraps(
    run,
)
class Shop:
    text = '''
def no_function():
'''

    async def find(self):
        def inner():
            pass

        return inner
if True:
    def late(): ...
"""
BROKEN = """\
class Shop:
    def find(self:
        return 1

    def last(self):
        return 2

def after():
    return 3
"""


@pytest.mark.parametrize(
    ("text", "suffix", "expected"),
    [
        (JAVA, ".java", "Shop 3-18, Shop.Shop 6-8, Shop.find 11-17"),
        (C, ".c", "helper 3-10, point 12-14, name_of 16-22"),
        (GO, ".go", "Server 3-5, Server.Run 7-14, main 16-18"),
        (RUBY, ".rb", "Shop 1-15, Shop.Cart 2-14, Shop.Cart.self.build 3-5, Shop.Cart.total? 7-13"),
        (
            RUST,
            ".rs",
            "Rule 3-5, Rule 7-18, Rule.new 8-10, Rule.run 12-17, tests 21-26, tests.works 23-25",
        ),
        (SHELL, ".sh", "main 1-3, other 5-7"),
        (
            TYPESCRIPT,
            ".ts",
            "Widget 3-17, Widget.constructor 6-8, Widget.render 10-16, f 19-21, a 23-27, a.renders 24-26, Shape 29-31",
        ),
        (MARKDOWN, ".md", "One 1-10, Two 3-8, Three 9-10"),
        (PYTHON, ".py", "Shop 1-13, Shop.find 9-13, Shop.find.inner 10-11, late 15-15"),
        (BROKEN, ".py", "Shop 1-6, Shop.find 2-3, Shop.last 5-6, after 8-9"),
        ("hello\nworld\n", ".txt", ""),
    ],
)
def test_each_definition_has_its_name_its_first_and_its_last_line(
    text: str, suffix: str, expected: str
) -> None:
    found = list_blocks(text, suffix)
    assert (
        ", ".join(f"{each.name} {each.first_line}-{each.last_line}" for each in found) == expected
    )


def test_a_block_is_found_by_its_last_names_and_a_line_is_in_the_innermost() -> None:
    blocks = list_blocks(PYTHON, ".py")
    for name in ("inner", "find.inner", "Shop::find::inner", "Shop#find.inner()"):
        assert [each.first_line for each in find_blocks(blocks, name)] == [10], name
    assert [each.first_line for each in find_blocks(blocks, "(*Shop).find")] == [
        each.first_line for each in find_blocks(blocks, "Shop.find")
    ]
    assert find_blocks(blocks, "ner") == []
    assert [each.name for each in match_blocks(blocks, "Shop.f*")] == [
        "Shop.find",
        "Shop.find.inner",
    ]
    assert match_blocks(blocks, "*") == blocks
    enclosing = find_enclosing_block(blocks, 13, 100)
    assert enclosing is not None
    assert enclosing.name == "Shop.find"
    assert find_enclosing_block(blocks, 14, 100) is None


def test_an_outline_that_is_too_long_loses_the_smallest_nested_blocks() -> None:
    assert format_outline(list_blocks(PYTHON, ".py"), 3) == [
        "Shop 1-13",
        "Shop.find 9-13",
        "late 15-15",
        "(1 more)",
    ]


@pytest.mark.parametrize("suffix", [".ts", ".java", ".c", ".rs", ".go", ".sh", ".rb"])
@pytest.mark.parametrize(
    "unit", ["** ", "a ", "a(", "export ", "<", "a::", "const a = (", "'", "*&", "pub("]
)
def test_no_line_takes_long(suffix: str, unit: str) -> None:
    start = time.process_time()
    list_blocks((unit * 2_000 + "\n") * 50, suffix)
    assert time.process_time() - start < 5, "a line that is tried in every way takes minutes"
