"""The agents that codeloop is compared with are found where `python -m bench.peers` puts them."""

from pathlib import Path

import pytest

from bench import peers, subjects


def test_an_installed_peer_is_found_before_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert subjects.find_pi() is None
    programs = tmp_path / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    (programs / "pi").write_text("#!/bin/sh\n")
    (programs / "pi").chmod(0o755)
    found = subjects.find_pi()
    assert found is not None
    assert found.environ["PATH"].startswith(f"{programs}:")


def test_without_npm_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "FOLDER", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert peers.main() == 1
    assert "npm" in capsys.readouterr().err
