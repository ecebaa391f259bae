"""Whether a program that is found holds its language server."""

import json
from pathlib import Path

import pytest

from codeloop.lsp.servers.choice import ProgramSearch, fill_packages, list_servers, select_servers
from codeloop.lsp.servers.program_check import has_server
from codeloop.schema.config import LspServerConfig, ProgramSandboxConfig

TSC = {"tsc": "typescript@7"}


def npm_package(modules: Path, name: str, version: str, program: str = "", file: str = "") -> Path:
    """Install a package as npm does; return its program's link."""
    home = modules / name
    (home / "bin").mkdir(parents=True)
    (home / "package.json").write_text(json.dumps({"name": name, "version": version}))
    if file:
        (home / file).parent.mkdir(exist_ok=True)
        (home / file).touch()
    link = modules / ".bin" / program
    if program:
        (home / "bin" / program).touch(0o755)
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(f"../{name}/bin/{program}")
    return link


def found(root: Path, path: Path | str = "", *, trusted: bool = True) -> list[str]:
    place = ProgramSearch(
        root, root, is_trusted=trusted, path=str(path), installed=root.parent / "installed"
    )
    return [
        each.row.name for each, _ in select_servers(list_servers(None, place), root / "a.ts", root)
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("version", "holds"), [("7.0.2", True), ("8.1.0-beta", True), ("5.9.3", False), ("", False)]
)
def test_the_compiler_holds_the_server_from_version_7_on(
    tmp_path: Path, version: str, holds: bool
) -> None:
    program = npm_package(tmp_path / "node_modules", "typescript", version, "tsc")
    assert has_server(str(program), TSC) is holds
    (tmp_path / "bin").mkdir()
    elsewhere = tmp_path / "bin" / "tsc"
    elsewhere.symlink_to(program)
    assert has_server(str(elsewhere), TSC) is holds, "a link to the link, as version managers make"
    shim = tmp_path / "node_modules" / "shims" / "tsc"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\n")
    assert has_server(str(shim), TSC) is holds, "a script that stands for it, as pnpm writes"


def test_the_projects_version_of_the_compiler_decides(root: Path, tmp_path: Path) -> None:
    (root / "package.json").write_text("{}")
    new = npm_package(tmp_path / "global" / "node_modules", "typescript", "7.0.2", "tsc").parent
    npm_package(
        tmp_path / "global" / "node_modules",
        "typescript-language-server",
        "6.0.0",
        "typescript-language-server",
    )
    assert found(root, new) == ["tsc"]
    npm_package(root / "node_modules", "typescript", "5.9.3", "tsc")
    assert found(root, new) == ["typescript"], (
        "with another version the project may have other errors"
    )
    assert found(root, new, trusted=False) == ["tsc"], "nothing of this project counts"


def test_a_link_of_rustup_holds_what_a_toolchain_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUSTUP_HOME", str(tmp_path / "rustup"))
    programs = tmp_path / "cargo" / "bin"
    programs.mkdir(parents=True)
    (programs / "rustup").touch(0o755)
    for name in ("rust-analyzer", "cargo"):
        (programs / name).symlink_to("rustup")
    toolchain = tmp_path / "rustup" / "toolchains" / "stable" / "bin"
    toolchain.mkdir(parents=True)
    (toolchain / "cargo").touch(0o755)
    assert has_server(str(programs / "cargo"), {})
    assert not has_server(str(programs / "rust-analyzer"), {})
    (toolchain / "rust-analyzer").touch(0o755)
    assert has_server(str(programs / "rust-analyzer"), {})


def test_a_server_is_given_the_nearest_package_that_it_needs(root: Path, tmp_path: Path) -> None:
    near, far = root / "node_modules", tmp_path / "global" / "node_modules"
    npm_package(near, "typescript", "7.0.2")
    npm_package(far, "typescript", "5.9.3", file="lib/typescript.js")
    value = {"tsdk": "{npm:typescript/lib:typescript.js}", "list": [1, "{npm}"]}
    assert fill_packages(value, [near, far]) == {
        "tsdk": str(far / "typescript" / "lib"),
        "list": [1, "{npm}"],
    }
    with pytest.raises(LookupError):
        fill_packages(value, [near])
    program = npm_package(far, "@astrojs/language-server", "2.0.0", "astro-ls")
    place = ProgramSearch(
        root, root, is_trusted=True, path=str(program.parent), installed=root.parent / "installed"
    )
    (astro,) = [each for each in list_servers(None, place) if each.row.name == "astro"]
    assert astro.row.initialization == {"typescript": {"tsdk": str(far / "typescript" / "lib")}}


@pytest.mark.parametrize(
    ("command", "sandbox", "state"),
    [
        (["./srv"], True, "untrusted"),
        (["node", "./tools/srv.js"], True, "untrusted"),
        (["node", "srv.js"], True, "untrusted"),
        (["node", "--stdio"], True, "found"),
        (["node", "--stdio"], False, "untrusted"),
        (["node", "--stdio"], ProgramSandboxConfig(network="on"), "untrusted"),
    ],
)
def test_what_would_run_a_projects_files_or_as_the_user_wants_trust(
    root: Path, tmp_path: Path, command: list[str], sandbox: bool | ProgramSandboxConfig, state: str
) -> None:
    (tmp_path / "bin").mkdir()
    for program in (tmp_path / "bin" / "node", root / "srv"):
        program.touch(0o755)
    configured = {"mine": LspServerConfig(command=command, extensions=[".x"], sandbox=sandbox)}

    def state_of(*, trusted: bool) -> str:
        path = str(tmp_path / "bin")
        place = ProgramSearch(
            root, root, is_trusted=trusted, path=path, installed=tmp_path / "none"
        )
        return next(
            each.state for each in list_servers(configured, place) if each.row.name == "mine"
        )

    assert state_of(trusted=False) == state
    assert state_of(trusted=True) == "found"
