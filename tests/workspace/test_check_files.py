"""Which files a check consists of, and what counts as a change of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

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
    for name in (
        "app.py",
        "src/shop.py",
        "tests/test_shop.py",
        "tests/data.json",
        "conftest.py",
        "README.md",
    ):
        put(tmp_path, name, name)
    found = hash_check_files(tmp_path, ["make test"], PATH)
    expected = {
        "Makefile",
        ".venv/bin/pytest",
        "scripts/all.sh",
        "tools/verify",
        "tests/test_shop.py",
    }
    assert found.hashes.keys() == expected | {"tests/data.json", "conftest.py"}
    more = hash_check_files(
        tmp_path, ["make test"], PATH, protect=("src/",), unprotect=("tests/**",)
    )
    assert more.hashes.keys() == expected - {"tests/test_shop.py"} | {"conftest.py", "src/shop.py"}


def test_new_tests_and_dependencies_are_no_change_and_new_settings_are(tmp_path: Path) -> None:
    put(
        tmp_path,
        "pyproject.toml",
        '[project]\nname = "x"\n[tool.pytest.ini_options]\naddopts = "-q"\n',
    )
    put(tmp_path, "package.json", '{"scripts": {"test": "jest"}, "dependencies": {}}')
    put(tmp_path, "tests/test_a.py", "a")
    before = hash_check_files(tmp_path, ["pytest"], PATH)
    put(
        tmp_path,
        "pyproject.toml",
        '[project]\nname = "y"\n[tool.pytest.ini_options]\naddopts = "-q"\n',
    )
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


SITE = ".venv/lib/python3.11/site-packages"
JEST = '{"name": "jest", "version": "1.0.0", "bin": "run.js", "dependencies": {"jest-core": "1"}}'


def make_project(root: Path) -> None:
    """A project with tests in Python and JavaScript, and the runners of both in it."""
    put(root, "Makefile", "test:\n\t.venv/bin/pytest tests && npm test\n")
    put(root, "package.json", '{"scripts": {"test": "jest"}}')
    put(root, "tests/test_shop.py", "import shop\n")
    put(root, "linked/checks/test_more.py", "import shop\n")
    (root / "more").mkdir()
    (root / "more/tests").symlink_to("../linked/checks")
    put(root, ".venv/pyvenv.cfg", "home = /usr/bin\n")
    put(root, ".venv/bin/pytest", "#!/bin/sh\n", 0o755)
    (root / ".venv/bin/python3").symlink_to("/usr/bin/python3")
    for name, required in (("pytest", "pluggy"), ("pluggy", "iniconfig"), ("other", "")):
        info = f"{SITE}/{name}-1.0.dist-info"
        put(root, f"{SITE}/{name}/__init__.py", name)
        put(root, f"{info}/RECORD", f"{name}/__init__.py,sha256=x,1\n{info}/METADATA,,\n")
        requires = f"Requires-Dist: {required}>=1\n" if required else ""
        put(
            root,
            f"{info}/METADATA",
            f"Name: {name}\n{requires}Requires-Dist: other ; extra == 'dev'\n",
        )
    put(root, "node_modules/jest/package.json", JEST)
    put(root, "node_modules/jest/run.js", "run()")
    put(root, "node_modules/jest-core/package.json", '{"name": "jest-core"}')
    put(root, "node_modules/jest-core/core.js", "core()")
    put(root, "node_modules/left/package.json", "{}")
    put(root, "node_modules/left/index.js", "left()")
    (root / "node_modules/.bin").mkdir()
    (root / "node_modules/.bin/jest").symlink_to("../jest/run.js")


def replace_link(root: Path, name: str, target: str) -> None:
    (root / name).unlink()
    (root / name).symlink_to(target)


TRICKS: dict[str, Callable[[Path], None]] = {
    "unittest.py was added": lambda root: put(root, "unittest.py", ""),
    "src/json/__init__.py was added": lambda root: put(root, "src/json/__init__.py", ""),
    "tests/pytest.py was added": lambda root: put(root, "tests/pytest.py", ""),
    "tests/test_shop/__init__.py was added": lambda root: put(
        root, "tests/test_shop/__init__.py", ""
    ),
    "tests/test_shop.cpython-311-x86_64-linux-gnu.so was added": lambda root: put(
        root, "tests/test_shop.cpython-311-x86_64-linux-gnu.so", ""
    ),
    f"{SITE}/a.pth was added": lambda root: put(root, f"{SITE}/a.pth", "import os; os._exit(0)\n"),
    f"{SITE}/sitecustomize.py was added": lambda root: put(root, f"{SITE}/sitecustomize.py", "1"),
    f"{SITE}/usercustomize/__init__.py was added": lambda root: put(
        root, f"{SITE}/usercustomize/__init__.py", "1"
    ),
    f"{SITE}/evil-1.dist-info/entry_points.txt was added": lambda root: put(
        root,
        f"{SITE}/evil-1.dist-info/entry_points.txt",
        "[console_scripts]\na = b\n[pytest11]\nevil = evil\n",
    ),
    f"{SITE}/pytest/__init__.py was changed": lambda root: put(
        root, f"{SITE}/pytest/__init__.py", "evil"
    ),
    f"{SITE}/pluggy/__init__.py was changed": lambda root: put(
        root, f"{SITE}/pluggy/__init__.py", "evil"
    ),
    f"{SITE}/pytest/__init__.py was deleted": lambda root: put(
        root, f"{SITE}/pytest-1.0.dist-info/RECORD", ""
    ),
    ".venv/pyvenv.cfg was changed": lambda root: put(root, ".venv/pyvenv.cfg", "home = /tmp\n"),
    ".venv/bin/python3 was changed": lambda root: replace_link(
        root, ".venv/bin/python3", "/bin/true"
    ),
    "node_modules/.bin/jest was changed": lambda root: replace_link(
        root, "node_modules/.bin/jest", "/bin/true"
    ),
    "node_modules/jest/run.js was changed": lambda root: put(
        root, "node_modules/jest/run.js", "passed()"
    ),
    "node_modules/jest-core/core.js was changed": lambda root: put(
        root, "node_modules/jest-core/core.js", ""
    ),
    "more/tests/test_more.py was changed": lambda root: put(root, "linked/checks/test_more.py", ""),
    "more/tests/test_more.py was deleted": lambda root: replace_link(
        root, "more/tests", "../linked"
    ),
    ".npmrc was added": lambda root: put(root, ".npmrc", "script-shell=/bin/true\n"),
    "Cargo.toml was added": lambda root: put(root, "Cargo.toml", "[lib]\ntest = false\n"),
    "web/vite.config.ts was added": lambda root: put(root, "web/vite.config.ts", ""),
    ".cargo/config.toml was added": lambda root: put(root, ".cargo/config.toml", ""),
    "__mocks__/fs.js was added": lambda root: put(root, "__mocks__/fs.js", ""),
}


@pytest.mark.parametrize("change", TRICKS)
def test_what_a_check_loads_besides_its_files_counts_as_well(tmp_path: Path, change: str) -> None:
    make_project(tmp_path)
    before = hash_check_files(tmp_path, ["make test"], PATH)
    assert describe_changes(before, hash_check_files(tmp_path, ["make test"], PATH)) == []
    TRICKS[change](tmp_path)
    assert change in describe_changes(before, hash_check_files(tmp_path, ["make test"], PATH))


def test_what_work_on_a_project_installs_and_names_is_no_change(tmp_path: Path) -> None:
    make_project(tmp_path)
    put(tmp_path, "queue.py", "old")
    put(tmp_path, "pom.xml", "<a><dependencies><d>1</d></dependencies></a>")
    put(tmp_path, "build.gradle", "dependencies {\n    implementation 'a:b:1'\n}\n")
    put(tmp_path, "Cargo.toml", '[dependencies]\na = "1"\n')
    before = hash_check_files(tmp_path, ["make test"], PATH)
    put(tmp_path, "queue.py", "new")
    put(tmp_path, "pom.xml", "<a><dependencies><d>2</d></dependencies></a>")
    put(
        tmp_path,
        "build.gradle",
        "dependencies {\n    implementation 'a:b:2'\n    testImplementation(\"c:d:1\")\n}\n",
    )
    put(tmp_path, "Cargo.toml", '[dependencies]\na = "2"\n')
    put(tmp_path, "app/types.py", "")
    put(tmp_path, "src/json/data.txt", "")
    put(tmp_path, f"{SITE}/other/__init__.py", "2")
    put(tmp_path, f"{SITE}/__editable__.shop.pth", "/srv/shop/src\n")
    put(tmp_path, f"{SITE}/new-1.dist-info/entry_points.txt", "[console_scripts]\na = b\n")
    put(tmp_path, "node_modules/left/index.js", "2")
    put(tmp_path, "node_modules/right/index.js", "")
    # The same once more, as an installation writes it.
    for name in (f"{SITE}/pytest/__init__.py", "node_modules/jest/run.js"):
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        (tmp_path / name).write_bytes(data)
    assert describe_changes(before, hash_check_files(tmp_path, ["make test"], PATH)) == []
    (tmp_path / ".venv").rename(tmp_path / "venv")
    added = describe_changes(before, hash_check_files(tmp_path, ["make test"], PATH))
    assert not [each for each in added if "was added" in each], (
        "an environment that is new as a whole is no trick"
    )
