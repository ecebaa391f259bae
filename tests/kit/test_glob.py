import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.kit.glob import compiled, has_magic, split_root

RG = Path(sys.prefix) / "bin" / "rg"
FILES = ["a.py", "b.ts", "src/a.py", "src/deep/x.tsx", "src/deep/a.test.ts", ".hid/c.py", "src/[x].py", "src/a-b.py"]


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
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert {name for name in FILES if compiled(pattern).fullmatch(name)} == set(shown.splitlines())


@given(st.text(alphabet="ab/.*?[]{},!^\\-", max_size=12), st.text(alphabet="ab/.", max_size=8))
def test_any_text_is_a_pattern_or_refused_with_a_reason(pattern: str, path: str) -> None:
    try:
        compiled(pattern).fullmatch(path)
    except ValueError as error:
        reason = str(error)
    else:
        return
    assert pattern in reason


@given(st.text(alphabet="abc/.-_ ()+^$|", min_size=1, max_size=12))
def test_plain_text_matches_only_itself(text: str) -> None:
    assert not has_magic(text)
    assert compiled(text).fullmatch(text)
    assert not compiled(text).fullmatch(text + "x")


@pytest.mark.parametrize(
    ("pattern", "split"),
    [("/a/b/*.py", ("/a/b", "*.py")), ("/*", ("/", "*")), ("../x/**/y", ("../x", "**/y")), ("/a/b.py", ("/a", "b.py"))],
)
def test_the_plain_folders_before_a_pattern_are_split_off(pattern: str, split: tuple[str, str]) -> None:
    assert split_root(pattern) == split
