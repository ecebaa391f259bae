"""Blocks of JavaScript and TypeScript in the forms in which people write them: how each is named,
and where it ends.
"""

import time

import pytest

from codeloop.workspace.search.code_blocks import find_blocks, list_blocks

CLASS = """\
class Store<T> {
  #count = 0;
  static async getItem(key: string) {
    return 1;
  }
  get size() {
    return 1;
  }
  getter() {
    return 2;
  }
  #hidden(a) {
    return a;
  }
  settle(
    a: string,
    b: number,
  ): Promise<void> {
    return `
text
`;
  }
  arrow = async (e: Event) => {
    go(e);
  };
  private readonly typed = <T,>(a: T): T => {
    return a;
  };
  last() {
    setTimeout(function () {
      x();
    });
  }
}
"""
FUNCTIONS = """\
export const make = <T>(a: string): X => {
  return a;
};
export const long = async (
  a: string,
  b = f(1),
): Promise<X> => {
  return a;
};
const Card = ({
  title,
}: Props) => {
  return title;
};
module.exports.foo = function (a) {
  return a;
};
exports.parse = (s) => {
  return s;
};
Store.prototype.bar = function () {
  return 1;
};
export const B = React.memo(function B(props) {
  return 1;
});
const C = memo((props) => {
  return 1;
});
"""
OBJECTS = """\
function main() {
  run();
}
const api = {
  list(req) {
    return 1;
  },
  get: async (req) => {
    return 1;
  },
  'put-it': function (a) {
    return 1;
  },
};
interface Props {
  onClick: (e: Event) => void;
}
function one() { return 1; }
Object.defineProperty(Store.prototype, 'x', {
  get() {
    return 1;
  }
});
"""
TESTS = r"""describe.each([
  [1, 2],
])('adds %i', (a, b) => {
  it('honors the `closeTimeout` option', () => {
    x();
  });
});
describe.each([[1], [2]])('one line', (a) => {
  test.only("it's fine", () => {
    x();
  });
  it('isn\'t (bad)', function () {
    x();
  });
});
describe('#pause', () => {
  x();
});
"""
DEFAULT = """\
export default function () {
  return 1;
}
"""
VUE = """\
<script setup lang="ts">
const props = defineProps<{ a: string }>();

const load = async <T,>(key: T) => {
  return key;
};
</script>
<script>
export default {
  methods: {
    setItem(key) {
      return key;
    },
  },
};
</script>
<style>
.a {
  color: red;
}
</style>
"""
TABLE = """\
test.each`
  a    | b
  ${1} | ${2}
`("adds $a", ({ a, b }) => {
  x();
});
"""


@pytest.mark.parametrize(
    ("text", "suffix", "expected"),
    [
        (
            CLASS,
            ".ts",
            [
                "Store 1-19",
                "Store.getItem 3-5",
                "Store.size 6-8",
                "Store.getter 9-11",
                "Store.#hidden 12-14",
                "Store.settle 15-19",
                "Store.arrow 23-25",
                "Store.typed 26-28",
                "Store.last 29-33",
            ],
        ),
        (
            FUNCTIONS,
            ".ts",
            [
                "make 1-3",
                "long 4-9",
                "Card 10-14",
                "foo 15-17",
                "parse 18-20",
                "Store.bar 21-23",
                "B 24-26",
                "C 27-29",
            ],
        ),
        (
            OBJECTS,
            ".js",
            [
                "main 1-3",
                "list 5-7",
                "get 8-10",
                "put-it 11-13",
                "Props 15-17",
                "one 18-18",
                "get 20-22",
            ],
        ),
        (
            TESTS,
            ".ts",
            [
                "adds %i 1-7",
                "adds %i.honors the `closeTimeout` option 4-6",
                "one line 8-15",
                "one line.it's fine 9-11",
                "one line.isn't (bad) 12-14",
                "#pause 16-18",
            ],
        ),
        (DEFAULT, ".mjs", ["default 1-3"]),
        (VUE, ".vue", ["load 4-6", "setItem 11-13"]),
        (TABLE, ".ts", ["adds $a 1-3"]),
        ("export default (a) => {\n}\n", ".ts", ["default 1-2"]),
        ("export default class extends Base {\n}\n", ".ts", ["default 1-2"]),
        ("export default memo(function Name(a) {\n});\n", ".ts", ["Name 1-2"]),
        ("module.exports = function create(a) {\n};\n", ".ts", ["create 1-2"]),
        ("module.exports = (a) => {\n};\n", ".ts", ["exports 1-2"]),
        ("const A = class extends Base {\n};\n", ".ts", ["A 1-2"]),
        ("x.y = foo(function (a) {\n});\n", ".ts", []),
        ("const b = await run((a) => {\n});\n", ".ts", []),
        ("if (\n  a\n) {\n  b();\n}\n", ".ts", []),
        ("describe('a \\\\ b', function () {\n});\n", ".ts", ["a \\\\ b 1-2"]),
        ("const at: (a: string) => void = (a) => {\n};\n", ".ts", ["at 1-2"]),
        ("function Card({\n  a,\n}: Props) {\n}\n", ".ts", ["Card 1-4"]),
        ("async(a) {\n}\n", ".ts", ["async 1-2"]),
        ("  static *setAll(a) {\n  }\n", ".ts", ["setAll 1-2"]),
        ("test(`a 'b' \"c\"`, () => {\n});\n", ".ts", ["a 'b' \"c\" 1-2"]),
    ],
)
def test_each_form_of_a_definition_is_found_below_what_holds_it(
    text: str, suffix: str, expected: list[str]
) -> None:
    assert [
        f"{each.name} {each.first_line}-{each.last_line}" for each in list_blocks(text, suffix)
    ] == expected


@pytest.mark.parametrize(
    ("text", "name", "first"),
    [
        (CLASS, "#hidden", 12),
        (CLASS, "Store.#hidden", 12),
        (CLASS, "Store#hidden", 12),
        (CLASS, "hidden", 12),
        (CLASS, "Store#getItem", 3),
        (CLASS, "Store.getItem(key)", 3),
        (TESTS, "#pause", 16),
        (TESTS, "honors the `closeTimeout` option", 4),
        (TESTS, "isn't (bad)", 12),
    ],
)
def test_a_name_is_found_as_the_outline_writes_it(text: str, name: str, first: int) -> None:
    assert [each.first_line for each in find_blocks(list_blocks(text, ".ts"), name)] == [first]


@pytest.mark.parametrize(
    "unit", ["a.", "a = (", "a: (", "=>", "a(()", "'", "`", "<a ", "memo(", "each(", "\\", "get "]
)
def test_no_line_of_a_script_takes_long(unit: str) -> None:
    start = time.process_time()
    list_blocks((unit * 2_000 + "\n") * 5 + ("a(\n" + "\n" * 50) * 20, ".ts")
    assert time.process_time() - start < 1, "a line that is tried in every way takes minutes"
