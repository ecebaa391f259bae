import os
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.kit.text.undecodable import escape_path
from codeloop.workspace.search.file_filter import FileFilter
from codeloop.workspace.search.grep_query import GrepQuery, SearchFailed
from codeloop.workspace.search.newest_files import keep_newest
from codeloop.workspace.search.rg_output import LineReader
from codeloop.workspace.search.ripgrep import Ripgrep

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Five files of different ages, the last of the list the newest; two that are ignored;
    a git folder.
    """
    files = {
        "old.py": "needle old\n",
        "src/a.py": "one\nneedle two\nthree\nneedle four\n",
        "src/deep/b.ts": "needle ts\n",
        ".hidden/c.py": "needle hidden\n",
        "new.py": "nothing\n",
        "skipped.log": "needle ignored\n",
        "node_modules/x.py": "needle ignored\n",
        ".git/config": "needle git\n",
        ".gitignore": "*.log\nnode_modules\n",
    }
    for age, (name, text) in enumerate(files.items()):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_000_000 + age, 1_000_000 + age))
    return tmp_path


def names(root: Path, paths: list[str]) -> set[str]:
    return {os.path.relpath(path, root) for path in paths}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", {"old.py", "src/a.py", ".hidden/c.py", "new.py"}),
        ("**/*.py", {"old.py", "src/a.py", ".hidden/c.py", "new.py"}),
        ("src/**", {"src/a.py", "src/deep/b.ts"}),
        ("./src/*.{py,ts}", {"src/a.py"}),
        ("*.log", set[str]()),
        ("node_modules/**", set[str]()),
        ("a.py", {"src/a.py"}),
        ("!*.py", {"src/deep/b.ts", ".gitignore"}),
        ("!*", set[str]()),
        ("!**", set[str]()),
        ("!**/*", set[str]()),
        ("!/**", set[str]()),
        ("!src/**", {"old.py", ".hidden/c.py", "new.py", ".gitignore"}),
        ("**/*", {"old.py", "src/a.py", "src/deep/b.ts", ".hidden/c.py", "new.py", ".gitignore"}),
    ],
)
async def test_patterns_choose_files_and_ignore_files_are_honoured(
    tree: Path, pattern: str, expected: set[str]
) -> None:
    found = await Ripgrep().list_files(tree, pattern, ENVIRONMENT)
    assert names(tree, found.paths) == expected


async def test_newest_files_come_first(tree: Path) -> None:
    found = await Ripgrep().list_files(tree, "*.py", ENVIRONMENT)
    shown = keep_newest(found.paths, 3)
    assert [os.path.relpath(path, tree) for path in shown] == ["new.py", ".hidden/c.py", "src/a.py"]


async def test_lines_that_match_are_found_with_their_numbers_newest_file_first(tree: Path) -> None:
    found = await Ripgrep().grep(tree, GrepQuery("needle"), ENVIRONMENT)
    assert [hits.path.name for hits in found.files] == ["c.py", "b.ts", "a.py", "old.py"]
    assert [(line.number, line.text) for line in found.files[2].lines] == [
        (2, "needle two"),
        (4, "needle four"),
    ]
    assert found.matches == 5


async def test_include_narrows_and_context_is_marked(tree: Path) -> None:
    found = await Ripgrep().grep(
        tree, GrepQuery("four", include="src/**/*.py", lines_before=1, lines_after=1), ENVIRONMENT
    )
    assert [(line.number, line.is_match) for line in found.files[0].lines] == [
        (3, False),
        (4, True),
    ]
    assert (
        await Ripgrep().grep(tree, GrepQuery("needle", include="!*.py"), ENVIRONMENT)
    ).matches == 1


async def test_files_and_count_modes(tree: Path) -> None:
    files = await Ripgrep().grep(tree, GrepQuery("needle", mode="files"), ENVIRONMENT)
    assert {hits.path.name for hits in files.files} == {"old.py", "a.py", "b.ts", "c.py"}
    count = await Ripgrep().grep(tree, GrepQuery("needle", mode="count"), ENVIRONMENT)
    assert {hits.path.name: hits.matches for hits in count.files}["a.py"] == 2


async def test_counts_are_whole_however_many_there_are(tree: Path) -> None:
    (tree / "many.txt").write_text("needle\n" * 100_000)
    found = await Ripgrep().grep(tree, GrepQuery("needle", mode="count"), ENVIRONMENT)
    assert (found.matches, found.stop_reason) == (100_005, "")


async def test_case_lines_look_around_and_single_files(tree: Path) -> None:
    rg = Ripgrep()
    assert (await rg.grep(tree, GrepQuery("NEEDLE"), ENVIRONMENT)).matches == 0
    assert (await rg.grep(tree, GrepQuery("NEEDLE", ignore_case=True), ENVIRONMENT)).matches == 5
    assert (await rg.grep(tree, GrepQuery(r"two\nthree", multiline=True), ENVIRONMENT)).files[
        0
    ].lines[1].text == "three"
    assert (await rg.grep(tree, GrepQuery(r"needle (?=two)"), ENVIRONMENT)).matches == 1
    assert (await rg.grep(tree / "skipped.log", GrepQuery("needle"), ENVIRONMENT)).matches == 1


@pytest.mark.parametrize(
    ("pattern", "reason"), [("a(", "unclosed group"), ("[z-a]", "invalid"), ("*a", "repetition")]
)
async def test_a_bad_expression_gives_ripgreps_reason(
    tree: Path, pattern: str, reason: str
) -> None:
    with pytest.raises(SearchFailed, match=reason):
        await Ripgrep().grep(tree, GrepQuery(pattern), ENVIRONMENT)


@pytest.mark.parametrize("pattern", ["[z", "*.{a", "src/{a", "src/[z"])
async def test_a_bad_file_pattern_is_refused_with_the_reason(tree: Path, pattern: str) -> None:
    with pytest.raises(SearchFailed, match="never closed"):
        await Ripgrep().list_files(tree, pattern, ENVIRONMENT)


async def test_a_pattern_that_looks_like_an_option_is_a_pattern(tree: Path) -> None:
    (tree / "-e").write_text("--pre=evil\n")
    found = await Ripgrep().grep(tree, GrepQuery("--pre=evil"), ENVIRONMENT)
    assert found.files[0].path == tree / "-e"
    assert (await Ripgrep().grep(tree / "-e", GrepQuery("pre"), ENVIRONMENT)).matches == 1
    assert names(tree, (await Ripgrep().list_files(tree, "-e", ENVIRONMENT)).paths) == {"-e"}


async def test_names_with_line_ends_and_bytes_that_are_not_utf8(tree: Path) -> None:
    odd = [b"new\nline.txt", b"bad\xff.txt", b"colon:12:x.txt", b"--\nx.txt"]
    for name in odd:
        Path(os.fsdecode(os.fsencode(tree) + b"/" + name)).write_text("oddity\n")
    found = await Ripgrep().grep(
        tree, GrepQuery("oddity", lines_before=2, lines_after=2), ENVIRONMENT
    )
    assert {os.fsencode(hits.path.name) for hits in found.files} == set(odd)
    assert all([line.text for line in hits.lines] == ["oddity"] for hits in found.files)
    listed = await Ripgrep().list_files(tree, "*.txt", ENVIRONMENT)
    assert {os.fsencode(Path(path).name) for path in listed.paths} == set(odd)


@given(st.binary(min_size=1, max_size=20).filter(lambda raw: b"\0" not in raw))
def test_any_name_can_be_shown_and_stored(raw: bytes) -> None:
    shown = escape_path(os.fsdecode(raw))
    assert shown.isprintable()
    assert shown.encode()


@pytest.mark.slow
async def test_long_lines_are_cut_and_a_50_mb_line_is_no_burden(tree: Path) -> None:
    (tree / "long.txt").write_text("needle " + "x" * 50_000_000 + "\n")
    found = await Ripgrep().grep(tree, GrepQuery("needle", include="long.txt"), ENVIRONMENT)
    assert len(found.files[0].lines[0].text) < 600


async def test_a_million_matches_stop_early_with_the_reason(tree: Path) -> None:
    (tree / "many.txt").write_text("needle\n" * 1_000_000)
    found = await Ripgrep().grep(tree, GrepQuery("needle", include="many.txt"), ENVIRONMENT)
    assert 20_000 <= found.matches < 1_000_000
    assert "more results than can be collected" in found.stop_reason
    assert len(found.files[0].lines) == 100


async def test_a_catastrophic_expression_ends_soon_and_says_that_it_gave_up(tree: Path) -> None:
    (tree / "a.txt").write_text("a" * 5000 + "b\n")
    found = await Ripgrep().grep(tree, GrepQuery(r"(?=a)(a+)+$"), ENVIRONMENT)
    assert "could be searched: ./a.txt" in found.stop_reason


async def test_an_ignore_file_that_is_not_read_is_named_with_what_it_is(tree: Path) -> None:
    with (tree / ".ignore").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    listed = await Ripgrep().list_files(tree, "*.py", ENVIRONMENT)
    assert f"{tree}/.ignore is larger than 16 MiB, so files that" in listed.stop_reason
    (tree / ".ignore").unlink()
    os.mkfifo(tree / ".ignore")
    listed = await Ripgrep().list_files(tree, "*.py", ENVIRONMENT)
    assert f"{tree}/.ignore is not a regular file, so files that" in listed.stop_reason


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_what_may_not_be_read_is_said(tree: Path) -> None:
    (tree / "src").chmod(0)
    found = await Ripgrep().list_files(tree, "*.py", ENVIRONMENT)
    (tree / "src").chmod(0o755)
    assert "Permission denied" in found.stop_reason
    assert "old.py" in names(tree, found.paths)


async def test_a_binary_file_says_that_it_matches(tree: Path) -> None:
    (tree / "data.bin").write_bytes(b"needle\0more\n")
    found = await Ripgrep().grep(tree / "data.bin", GrepQuery("needle"), ENVIRONMENT)
    assert "binary" in found.files[0].lines[0].text
    assert (
        await Ripgrep().grep(tree, GrepQuery("needle", include="data.bin"), ENVIRONMENT)
    ).matches == 0


async def test_the_users_ripgrep_configuration_does_not_apply(tree: Path) -> None:
    (tree / "rc").write_text("--max-count=0\n")
    environment = {**ENVIRONMENT, "RIPGREP_CONFIG_PATH": str(tree / "rc")}
    assert (await Ripgrep().grep(tree, GrepQuery("needle"), environment)).matches == 5


async def test_an_old_ripgrep_on_the_path_is_passed_over_a_recent_one_is_taken(
    tmp_path: Path,
) -> None:
    fake = tmp_path / "rg"
    fake.write_text("#!/bin/sh\necho 'ripgrep 11.0.2 (rev abc)'\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert await Ripgrep().find_executable(environment) != str(fake)
    fake.unlink()
    shutil.copy(await Ripgrep().find_executable({"PATH": "/nonexistent"}), fake)
    assert await Ripgrep().find_executable(environment) == str(fake)


async def test_a_search_that_takes_too_long_is_ended_and_gives_what_it_found(
    tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    slow = tmp_path_factory.mktemp("bin") / "rg"
    slow.write_text(
        "#!/bin/sh\n[ $1 = --version ] && exec echo ripgrep 14.1\nprintf './old.py\\0'\nexec sleep 900\n"
    )
    slow.chmod(0o755)
    for seconds in (
        0.2,
        2,
        20,
    ):  # a longer time if the machine was too busy for it to find something
        search = Ripgrep(seconds)
        search._path = str(slow)
        found = await search.list_files(tree, None, {"PATH": "/usr/bin:/bin"})
        assert f"stopped after {seconds} seconds" in found.stop_reason
        if found.paths:
            break
    assert names(tree, found.paths) == {"old.py"}


@given(st.lists(st.integers(1, 40), max_size=30))
def test_results_read_the_same_however_the_stream_is_cut(sizes: list[int]) -> None:
    stream = b"./a\n.py\x001:1:0:x\n./a\n.py\x002-2-y\n--\n./b\x0010:1:40:z:\r\n"
    stream += b'./c: binary file matches (found "\\0" byte)\n'
    reader = LineReader(Path("/w"), FileFilter(()), GrepQuery("x"))
    rest = stream
    for size in [*sizes, len(stream)]:
        reader.feed(rest[:size])
        rest = rest[size:]
    shown = [
        (str(hits.path), [(line.number, line.text) for line in hits.lines])
        for hits in reader.list_files()
    ]
    assert shown == [
        ("/w/a\n.py", [(1, "x"), (2, "y")]),
        ("/w/b", [(10, "z:")]),
        ("/w/c", [(0, "binary file matches")]),
    ]
