import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.kit.glob import compile_glob, has_wildcard, split_root

RG = Path(sys.prefix) / "bin" / "rg"
FILES = [
    "a.py",
    "b.ts",
    "src/a.py",
    "src/deep/x.tsx",
    "src/deep/a.test.ts",
    ".hid/c.py",
    "src/[x].py",
    "src/a-b.py",
]


@pytest.mark.parametrize(
    "pattern",
    ["src/*.py", "src/**", "src/**/*.ts", "**/a.py", "src/**/*.{ts,tsx}", "src/{a,deep/x}.*", "*/?.py", "src/[ab].py",
     "src/[!a].py", "src/[a-c]*.py", ".hid/**", "src/\\[x\\].py", "{src,.hid}/*.py", "src/d**p/*", "src/**/deep/*.tsx"],
)  # fmt: skip
def test_a_path_pattern_chooses_what_ripgrep_chooses(tmp_path: Path, pattern: str) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    command = [RG, "--no-config", "--files", "--hidden", "--glob", f"/{pattern}"]
    shown = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    ).stdout
    assert {name for name in FILES if compile_glob(pattern).fullmatch(name)} == set(
        shown.splitlines()
    )


@given(st.text(alphabet="ab/.*?[]{},!^\\-", max_size=12), st.text(alphabet="ab/.", max_size=8))
def test_any_text_is_a_pattern_or_refused_with_a_reason(pattern: str, path: str) -> None:
    try:
        compile_glob(pattern).fullmatch(path)
    except ValueError as error:
        reason = str(error)
    else:
        return
    assert pattern in reason


@given(st.text(alphabet="abc/.-_ ()+^$|", min_size=1, max_size=12))
def test_plain_text_matches_only_itself(text: str) -> None:
    assert not has_wildcard(text)
    assert compile_glob(text).fullmatch(text)
    assert not compile_glob(text).fullmatch(text + "x")


@pytest.mark.parametrize(
    ("pattern", "split"),
    [
        ("/a/b/*.py", ("/a/b", "*.py")),
        ("/*", ("/", "*")),
        ("../x/**/y", ("../x", "**/y")),
        ("/a/b.py", ("/a", "b.py")),
    ],
)
def test_the_plain_folders_before_a_pattern_are_split_off(
    pattern: str, split: tuple[str, str]
) -> None:
    assert split_root(pattern) == split


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("**/" * 12 + "x.py", "/".join(["ab"] * 40) + "/y.py"),
        ("**/" + "*a" * 20 + "b", "a" * 200),
        ("a/**" * 10 + "/b", "a/" * 100),
        ("{" * 40 + "a" + "}" * 40 + "/*", "a/" * 40),
        ("/".join(["*a*"] * 20), "/".join(["a" * 30] * 20) + "b/c"),
    ],
)
def test_a_pattern_made_to_be_slow_never_takes_long(pattern: str, path: str) -> None:
    program = f"from codeloop.kit.glob import compile_glob\nprint(compile_glob({pattern!r}).fullmatch({path!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=60, capture_output=True, check=True
    )
    assert done.stdout == b"None\n"


def test_a_pattern_that_stands_for_too_many_is_refused() -> None:
    with pytest.raises(ValueError, match="expands to more than"):
        compile_glob("{a,b}" * 20)


@given(st.text(alphabet="ab/*?", max_size=8), st.text(alphabet="ab/", max_size=8))
def test_a_pattern_matches_as_the_plain_expression_does(pattern: str, path: str) -> None:
    steps = re.sub(r"\*+", lambda run: run[0] if len(run[0]) < 3 else "**", pattern)
    body, at = "", 0
    while at < len(steps):
        starts = at == 0 or steps[at - 1] == "/"
        if steps.startswith("**/", at) and starts:
            body, at = body + "(?:.*/)?", at + 3
        elif steps.startswith("**", at):
            body, at = body + (".*" if starts else "[^/]*"), at + 2
        else:
            body, at = body + {"*": "[^/]*", "?": "[^/]"}.get(steps[at], steps[at]), at + 1
    assert bool(compile_glob(pattern).fullmatch(path)) == bool(re.fullmatch(body, path))
