"""The files that the package ships are those of the source,
made of pinned packages whose licences go with them.
"""

import json
import subprocess
from pathlib import Path

import pytest

from codeloop.web import STATIC_FOLDER
from tests.support.programs import ROOT

pytestmark = pytest.mark.e2e
SECONDS = 600
"""A program that takes longer hangs; on a machine with other work, one takes a minute."""


def read_all(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_shipped_files_are_those_that_the_source_gives(source: Path, tmp_path: Path) -> None:
    subprocess.run(
        ["node", "build.mjs", str(tmp_path / "built")], cwd=source, check=True, timeout=SECONDS
    )
    built, shipped = read_all(tmp_path / "built"), read_all(STATIC_FOLDER)
    assert sorted(built) == sorted(shipped), "run `make web`"
    assert [name for name in built if built[name] != shipped[name]] == [], "run `make web`"


def test_the_source_is_sound_under_strict_types(source: Path) -> None:
    done = subprocess.run(
        ["node_modules/.bin/tsc", "--noEmit"],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.stdout == ""


def test_files_of_the_source_stay_short() -> None:
    files = [
        path for folder in ("src", "style", "e2e") for path in (ROOT / "web" / folder).rglob("*.*")
    ]
    lines = {path.name: len(path.read_text().splitlines()) for path in files}
    assert {name: count for name, count in lines.items() if count > 400} == {}


def test_the_lock_file_pins_every_package_and_names_no_registry() -> None:
    text = (ROOT / "web" / "package-lock.json").read_text()
    packages = json.loads(text)["packages"]
    assert "resolved" not in text
    assert [name for name, row in packages.items() if name and not row.get("integrity")] == []
    wanted = json.loads((ROOT / "web" / "package.json").read_text())
    versions = {**wanted["dependencies"], **wanted["devDependencies"]}
    assert {name: packages[f"node_modules/{name}"]["version"] for name in versions} == versions


def test_the_licence_of_every_shipped_package_is_beside_the_files() -> None:
    wanted = json.loads((ROOT / "web" / "package.json").read_text())["dependencies"]
    licences = (STATIC_FOLDER / "licences.txt").read_text()
    assert [
        name for name, version in wanted.items() if f"\n{name} {version} (" not in licences
    ] == []


def test_no_file_asks_another_host() -> None:
    index = (STATIC_FOLDER / "index.html").read_text()
    assert "//" not in index
    assert "<script>" not in index
    assert "style=" not in index
