"""Texts from a project, a program or a model in their worst forms: each is read before
the loop would stand still.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.cli.output.markdown import Markdown
from codeloop.client.questions.permission_text import describe_request
from codeloop.client.questions.quoting import MAX_FULL_ROWS
from codeloop.client.questions.requester import Requester
from codeloop.extend import template
from codeloop.kit import glob, wildcard
from codeloop.kit.text import diff, frontmatter, mentions, plain_output, suggest, terminal_text
from codeloop.net.sse import SseParser
from codeloop.permission.defaults import make_base_rules
from codeloop.permission.rules import RuleLayer, judge_need, restrict
from codeloop.schema.permission import Need, PermissionRequest, PermissionRule
from codeloop.tool.web.page import decode_page
from codeloop.workspace.git.ignore_patterns import parse_ignore_file
from codeloop.workspace.project_checks import describe_project_checks
from codeloop.workspace.search.file_index import find_names, index_names
from tests.freeze.ticker import check_loop_turns

LINE = "a" * 65_536
ZEBRA = "".join(f"a{n}\nx{n % 150}\n" for n in range(10_000))
BOMB = "".join(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}' if n else 'x'] * 9)}]\n" for n in range(30))


def ignored(pattern: str, path: str) -> object:
    return parse_ignore_file(pattern.encode(), "").decide(
        path, path.rpartition("/")[2], is_folder=False
    )


def globbed(pattern: str, path: str) -> object:
    try:
        return glob.compile_glob(pattern).fullmatch(path)
    except ValueError as error:
        return str(error)


def headed(head: str) -> object:
    try:
        return frontmatter.split_frontmatter(f"---\n{head}\n---\n")
    except frontmatter.FrontmatterError as error:
        return str(error)


def restricted(patterns: list[str]) -> object:
    rules = [
        PermissionRule(permission="bash", pattern=pattern, action="ask") for pattern in patterns
    ]
    base = (RuleLayer("", make_base_rules("auto", Path("/tmp/scratch"))),)
    return judge_need(
        Need(permission="bash", patterns=("ab" * 500,)),
        restrict([base], RuleLayer("", tuple(rules))),
    )


def styled(text: str) -> str:
    markdown = Markdown(styled=True, columns=80)
    return markdown.feed(text) + markdown.end()


def asked(command: str, most: int = 12) -> object:
    request = PermissionRequest(
        id="per",
        session_id="ses",
        permission="bash",
        patterns=[command],
        metadata={"command": command},
        always=[],
    )
    return describe_request(request, Requester(), 80, most)


def received(*chunks: bytes) -> object:
    parser = SseParser(64 * 1024 * 1024)
    return [parser.feed(chunk) for chunk in chunks]


NAMES = index_names(["a" * 200 + "/" + "a" * 200 + f"/{number}" for number in range(10_000)])
TEXTS: dict[str, Callable[[], object]] = {
    "an ignore pattern of stars": lambda: ignored("*a" * 20 + "b", "a" * 250),
    "an ignore pattern of folders": lambda: ignored("**/" + "a/" * 900 + "b", "a/" * 2_000 + "c"),
    "an ignore pattern of any folders": lambda: ignored(
        "\n".join(["**/a*/" * 20 + "b"] * 100), "a/" * 2_000 + "c"
    ),
    "an ignore file of classes": lambda: ignored("[a-z]*[!b]\n" * 20_000, "a" * 250),
    "an ignore line that ends in blanks": lambda: ignored("a" + " " * 250_000, "a"),
    "a glob of stars": lambda: globbed("**/" + "*a" * 300 + "b", "a" * 4_000),
    "a glob of any folders": lambda: globbed("**/a*/" * 100 + "**/*b", "a/" * 2_000),
    "a glob of braces": lambda: globbed("{a,b}" * 8 + "*x" * 900, "a"),
    "a glob of braces within braces": lambda: globbed(
        "{" + "{a,b}," * 200 + "}" + "x" * 50_000, "a"
    ),
    "a rule of stars": lambda: wildcard.matches(LINE, "*a" * 5_000 + "b"),
    "a rule of single wildcards": lambda: wildcard.matches(LINE, "*" + "a?" * 500 + "b*"),
    "a rule that could match": lambda: wildcard.overlaps(LINE, "*" + "a?" * 500 + "b*"),
    "a rule that must match": lambda: wildcard.covers(
        ("a" + wildcard.ANY_WORDS) * 5_000, "*a *b" * 200
    ),
    "two hundred rules of a project": lambda: restricted(
        [f"{'*ab' * 40}{number}" for number in range(200)]
    ),
    "two hundred rules that meet ours": lambda: restricted(
        [f"{'*.e*n*v*' * 20}{number}*" for number in range(200)] + ["*" * 3_000]
    ),
    "a diff of lines that are everywhere": lambda: diff.make_unified_diff(
        "f", ZEBRA, ZEBRA.replace("a", "b")
    ),
    "a diff of lines turned round": lambda: diff.make_unified_diff(
        "f", ZEBRA, "\n".join(reversed(ZEBRA.split("\n")))
    ),
    "a YAML head of brackets": lambda: headed("{" * 100_000),
    "a YAML head of keys within keys": lambda: headed("? " * 60_000),
    "a YAML head of lists": lambda: headed("- " * 20_000),
    "a YAML head of aliases": lambda: headed(BOMB),
    "a YAML head of colons": lambda: headed("a: " + ": \t" * 80_000 + "x"),
    "quotes typed after a command": lambda: template.split_arguments("\"'" * 50_000),
    "mentions": lambda: mentions.list_mentions('@"' * 100_000),
    "shell pieces of a command": lambda: template.expand_template("!`" * 50_000, "x"),
    "a name that is nothing's": lambda: suggest.find_similar(
        "a" * 1_000_000, ["b" * 255 + str(n) for n in range(200)]
    ),
    "many near names": lambda: suggest.find_similar(
        "a" * 250, ["ab" * 120 + str(n) for n in range(5_000)]
    ),
    "a program that goes back": lambda: plain_output.to_plain_text("\x1b[999D" * 3_000),
    "a program's broken sequences": lambda: plain_output.to_plain_text(
        ("\x1b[" + "0" * 1_000) * 60
    ),
    "rows of progress": lambda: plain_output.to_plain_text(("1.1.1.1" * 40 + "%\n") * 100),
    "an answer of brackets": lambda: styled("[" * 20_000),
    "an answer of links": lambda: styled("[a](" * 3_000),
    "an answer of stars": lambda: styled("**a " * 20_000 + "*b **c " * 5_000),
    "an answer of backticks": lambda: styled("`a``b```c" * 5_000),
    "a table": lambda: styled("|" * 20_000 + "\n|---|\n" + "|" * 20_000),
    "a question about a long line": lambda: asked("a" * 10_000_000),
    "a question about many lines": lambda: asked("\n" * 2_000_000 + "rm x"),
    "a whole question": lambda: asked("\u202e\n" * 10_000, MAX_FULL_ROWS // 20),
    "a title of controls": lambda: terminal_text.one_line("\x00 " * 4_000_000, 80),
    "events without an end": lambda: received(*[b"data: x\n"] * 20_000),
    "events without anything": lambda: received(*[b"\n"] * 20_000),
    "a page's declaration": lambda: decode_page(b"<meta " * 80_000),
    "a header's charset": lambda: decode_page(b"x", "charset = " * 6_000),
    "a search for names": lambda: find_names(NAMES, "a" * 300 + "b", None, 100),
}


@pytest.mark.parametrize("name", TEXTS)
async def test_the_loop_turns_after(name: str) -> None:
    async def work() -> None:
        TEXTS[name]()

    await check_loop_turns(work)


FILES = {
    "Makefile": ["a" * 130_000, "a" + " " * 130_000, "a:\t" * 40_000],
    "justfile": ["a" + "b" * 130_000, "a b\n" * 32_000],
    "pyproject.toml": ["[" * 130_000, "[tool.poe.tasks]\n" + "test = 1\n" * 9_000],
    "package.json": [
        '{"scripts":{' + ",".join(f'"test{n}":1' for n in range(8_000)) + "}}",
        "[" * 130_000,
    ],
}


@pytest.mark.parametrize(
    ("name", "text"),
    [(name, text) for name, texts in FILES.items() for text in texts],
    ids=lambda value: value[:20] if len(value) < 20 else "",
)
async def test_the_loop_turns_after_a_project_file(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)

    async def work() -> None:
        describe_project_checks(tmp_path, tmp_path, [name], None)

    await check_loop_turns(work)
