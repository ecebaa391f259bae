"""Installing from the registries without a question: what people do first in any project.
Needs the network.
"""

import sys
from pathlib import Path

import pytest

from tests.everyday.session import Line, all_well, desk_of, reached, worked

pytestmark = pytest.mark.registries
COMMIT = (
    "git add -A && git commit -qm 'The first' && git log --format='%an: %s' && git status --short"
)
COMMITTED = "A. Person: The first\n"


def test_a_python_project(tmp_path: Path) -> None:
    reached(
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "-d",
        str(tmp_path / "tried"),
        "iniconfig",
    )
    desk = desk_of(tmp_path)
    (desk.work / ".gitignore").write_text(".venv\ndist\n*.egg-info\n__pycache__\n")
    (desk.work / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools>=61"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "calc"\nversion = "0.1"\ndependencies = ["iniconfig"]\n'
        '[tool.setuptools]\npackages = ["calc"]\n'
    )
    (desk.work / "calc").mkdir()
    (desk.work / "calc/__init__.py").write_text("def add(a, b):\n    return a + b\n")
    (desk.work / "test_calc.py").write_text(
        "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    )
    hook = "{id: check, name: check, entry: python -c 'import iniconfig', language: python, pass_filenames: false"
    hook += ", additional_dependencies: [iniconfig]}"
    (desk.work / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: local\n  hooks: [{hook}]\n"
    )
    installed, tested, built, checked, committed = ran = worked(
        desk,
        "python3 -m venv .venv && . .venv/bin/activate && pip install -q -e . pytest build pre-commit && pip freeze",
        "pytest -q",
        "python -m build 2>&1 | tail -1; ls dist",
        "git add -A; pre-commit run --all-files",
        COMMIT,
        seconds=400,
    )
    all_well(ran)
    assert "iniconfig" in installed.told
    assert "1 passed" in tested.told
    assert "calc-0.1-py3-none-any.whl" in built.told
    assert "Passed" in checked.told
    assert committed.told == COMMITTED


def test_a_node_project(tmp_path: Path) -> None:
    reached("npm", "view", "typescript", "version")
    desk = desk_of(tmp_path)
    (desk.work / ".gitignore").write_text("node_modules\ndist\n")
    options = '{"target": "es2022", "module": "commonjs", "rootDir": "src", "outDir": "dist", "types": []}'
    (desk.work / "tsconfig.json").write_text(
        f'{{"compilerOptions": {options}, "include": ["src"]}}\n'
    )
    (desk.work / "src").mkdir()
    (desk.work / "src/calc.ts").write_text(
        "export const add = (a: number, b: number): number => a + b\n"
    )
    (desk.work / "calc.test.mjs").write_text(
        'import { expect, test } from "vitest"\nimport calc from "./dist/calc.js"\n'
        'test("adds", () => { expect(calc.add(1, 2)).toBe(3) })\n'
    )
    (desk.work / "server.js").write_text(
        "require('http').createServer((_, answer) => answer.end('served')).listen(8765, 'localhost')\n"
    )
    ask = "for i in $(seq 600); do curl -sf localhost:8765 && break; sleep 0.1; done"
    _, built, tested, again, _, asked, committed = ran = worked(
        desk,
        "npm init -y && npm install --save-dev --no-audit --no-fund typescript vitest",
        "npm pkg set scripts.build=tsc scripts.test='vitest run' scripts.dev='node server.js' && npm run build",
        "npm test 2>&1",
        "npm ci && npx tsc --version",
        Line("npm run dev", {"run_in_background": True}),
        ask,
        COMMIT,
        seconds=400,
    )
    all_well(ran)
    assert "> tsc" in built.told
    assert "1 passed" in tested.told
    assert "Version" in again.told
    assert (asked.told, committed.told) == ("served", COMMITTED)


def test_a_go_project(tmp_path: Path) -> None:
    reached("go", "mod", "download", "-modcacherw", "golang.org/x/text@v0.3.8")
    desk = desk_of(tmp_path)
    (desk.work / "go.mod").write_text("module example.com/app\n")
    (desk.work / "main.go").write_text(
        'package main\n\nimport "golang.org/x/text/language"\n\nfunc main() { println(language.English.String()) }\n'
    )
    (desk.work / "main_test.go").write_text(
        'package main\n\nimport "testing"\n\nfunc TestMain1(t *testing.T) {}\n'
    )
    tidied, tested, committed = ran = worked(
        desk,
        "go get golang.org/x/text@v0.3.8 && go mod tidy && go mod download && go build -o app . && ./app 2>&1",
        "go vet ./... && go test ./...",
        f"printf 'app\\n' > .gitignore; {COMMIT}",
        seconds=400,
    )
    all_well(ran)
    assert "en" in tidied.told
    assert "ok" in tested.told
    assert committed.told == COMMITTED


def test_a_rust_project(tmp_path: Path) -> None:
    reached("cargo", "info", "itoa")
    desk = desk_of(tmp_path)
    _, tested, committed = ran = worked(
        desk,
        "cargo init -q --name app . && cargo add -q itoa && cargo build -q",
        "cargo test -q && cargo run -q",
        COMMIT,
        seconds=400,
    )
    all_well(ran)
    assert "Hello, world!" in tested.told
    assert committed.told == COMMITTED
