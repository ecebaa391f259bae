"""Which files a check consists of, and what counts as a change of them."""

from pathlib import Path

from codeloop.workspace.check_files import describe_changes, hash_check_files

PATH = "/usr/bin:/bin"


def put(root: Path, name: str, text: str, mode: int = 0o644) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


def test_the_files_of_a_check_are_found_from_its_command(tmp_path: Path) -> None:
    put(tmp_path, "Makefile", "test:\n\t.venv/bin/pytest && sh scripts/all.sh && python app.py\n")
    put(tmp_path, ".venv/bin/pytest", "#!/bin/sh\n", 0o755)
    put(tmp_path, "scripts/all.sh", "exec tools/verify\n")
    put(tmp_path, "tools/verify", "#!/bin/sh\n", 0o755)
    for name in ("app.py", "src/shop.py", "tests/test_shop.py", "tests/data.json", "conftest.py", "README.md"):
        put(tmp_path, name, name)
    found = hash_check_files(tmp_path, ["make test"], PATH)
    expected = {"Makefile", ".venv/bin/pytest", "scripts/all.sh", "tools/verify", "tests/test_shop.py"}
    assert found.keys() == expected | {"tests/data.json", "conftest.py"}
    more = hash_check_files(tmp_path, ["make test"], PATH, protect=("src/",), unprotect=("tests/**",))
    assert more.keys() == expected - {"tests/test_shop.py"} | {"conftest.py", "src/shop.py"}


def test_new_tests_and_dependencies_are_no_change_and_new_settings_are(tmp_path: Path) -> None:
    put(tmp_path, "pyproject.toml", '[project]\nname = "x"\n[tool.pytest.ini_options]\naddopts = "-q"\n')
    put(tmp_path, "package.json", '{"scripts": {"test": "jest"}, "dependencies": {}}')
    put(tmp_path, "tests/test_a.py", "a")
    before = hash_check_files(tmp_path, ["pytest"], PATH)
    put(tmp_path, "pyproject.toml", '[project]\nname = "y"\n[tool.pytest.ini_options]\naddopts = "-q"\n')
    put(tmp_path, "package.json", '{"scripts": {"test": "jest"}, "dependencies": {"left": "1"}}')
    put(tmp_path, "tests/test_b.py", "b")
    assert describe_changes(before, hash_check_files(tmp_path, ["pytest"], PATH)) == []
    put(tmp_path, "pyproject.toml", '[tool.pytest.ini_options]\naddopts = "-q -k none"\n')
    put(tmp_path, "package.json", '{"scripts": {"test": "true"}}')
    put(tmp_path, "tests/conftest.py", "")
    (tmp_path / "tests" / "test_a.py").unlink()
    assert describe_changes(before, hash_check_files(tmp_path, ["pytest"], PATH)) == [
        "package.json was changed",
        "pyproject.toml was changed",
        "tests/conftest.py was added",
        "tests/test_a.py was deleted",
    ]
