"""Clients that others' generators make from the document work,
and so does what is left of an older client.
"""

from pathlib import Path

import pytest

from codeloop.server.openapi.document import make_document
from tests.interop.stage import (
    PASSWORD,
    Stage,
    fill_folder,
    find_cache,
    make_python_environment,
    open_stage,
    run_server,
)

pytestmark = pytest.mark.interop
HERE = Path(__file__).resolve().parent
REFUSED = {
    "app.get": "404",
    "app.init": "404",
    "app.modes": "404",
    "file.read": "400",
    "session.share": "400",
}
"""Calls of the older client for which the contract has no route any more,
or that we do not offer.
"""


def python_tools() -> Path:
    """Return the folder of an environment with the generator for Python and the
    reference's older client.
    """
    return make_python_environment("python-clients", HERE / "requirements.txt")


def typescript_tools() -> Path:
    """Return a folder with the generators for TypeScript and its compiler."""
    inputs = [HERE / "package.json", HERE / "package-lock.json"]
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
    return fill_folder(
        find_cache("typescript-clients", *inputs), inputs, [["node", "--version"], install]
    )


def run(stage: Stage, command: list[str], cwd: Path, more: dict[str, str] | None = None) -> str:
    """Run a program that has to succeed and return what it printed."""
    done = stage.ask(command, more, cwd=cwd, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_client_for_python_is_whole_and_talks_to_the_server(tmp_path: Path) -> None:
    tools = python_tools()
    with open_stage(tmp_path) as stage, run_server(stage) as url:
        (tmp_path / "document.json").write_bytes(make_document())
        path = {"PATH": f"{tools / 'bin'}:/usr/bin:/bin"}  # it formats what it wrote with a program
        words = [
            "generate",
            "--path",
            "document.json",
            "--output-path",
            "made",
            "--fail-on-warning",
        ]
        run(stage, [str(tools / "bin" / "openapi-python-client"), *words], tmp_path, path)
        where = {"BASE_URL": url, "PASSWORD": PASSWORD, "PYTHONPATH": str(tmp_path / "made")}
        said = run(
            stage, [str(tools / "bin" / "python"), str(HERE / "generated.py")], tmp_path, where
        )
    assert [line.split()[0] for line in said.splitlines()] == ["ok"] * 4


def test_clients_for_typescript_are_sound_and_talk_to_the_server(tmp_path: Path) -> None:
    tools = typescript_tools()
    with open_stage(tmp_path) as stage, run_server(stage) as url:
        (tmp_path / "node_modules").symlink_to(tools / "node_modules")
        (tmp_path / "document.json").write_bytes(make_document())
        for name in ("call.ts", "tsconfig.json"):
            (tmp_path / name).write_bytes((HERE / name).read_bytes())
        programs = tools / "node_modules" / ".bin"
        run(
            stage,
            [str(programs / "openapi-typescript"), "document.json", "-o", "document.ts"],
            tmp_path,
        )
        run(stage, [str(programs / "openapi-ts"), "-i", "document.json", "-o", "hey"], tmp_path)
        run(stage, [str(programs / "tsc"), "-p", "."], tmp_path)
        where = {"BASE_URL": url, "PASSWORD": PASSWORD}
        said = run(stage, ["node", "built/call.js"], tmp_path, where)
    assert [line.split()[0] for line in said.splitlines()] == ["ok"] * 4


def test_an_older_client_works_as_far_as_the_contract_goes(tmp_path: Path) -> None:
    tools = python_tools()
    with open_stage(tmp_path) as stage, run_server(stage) as url:
        where = {"BASE_URL": url, "PASSWORD": PASSWORD}
        said = run(
            stage, [str(tools / "bin" / "python"), str(HERE / "older.py")], stage.project, where
        )
    answers = dict(line.split() for line in said.splitlines())
    assert len(answers) == 18
    assert {name: answer for name, answer in answers.items() if answer != "ok"} == REFUSED
