"""An environment of Harbor on this machine, in bubblewrap: the folders of a container
are bound from one of ours.
"""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

OURS = ("logs", "tests", "solution", "app", "installed-agent", "home")
"""The top folders that a container has of its own."""


class LocalEnvironment(BaseEnvironment):
    """A task sees the programs of this machine, and may change its own folders and /tmp."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._root = Path(tempfile.mkdtemp(prefix="harbor-local-"))

    @staticmethod
    def type() -> str:
        return "local"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities()

    def _validate_definition(self) -> None:
        if not self.environment_dir.is_dir():
            raise FileNotFoundError(self.environment_dir)

    def _place(self, path: str) -> Path:
        return self._root / str(path).lstrip("/")

    def _bubble(self, cwd: str) -> list[str]:
        binds: list[str] = []
        for folder in Path("/").iterdir():
            if folder.is_symlink():
                binds += ["--symlink", str(folder.readlink()), str(folder)]
            elif folder.name not in {*OURS, "proc", "dev", "tmp"}:
                binds += ["--ro-bind", str(folder), str(folder)]
        for name in OURS:
            binds += ["--bind", str(self._root / name), f"/{name}"]
        return [
            "bwrap",
            "--die-with-parent",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--bind",
            "/tmp",
            "/tmp",
            *binds,
            "--chdir",
            cwd,
        ]

    async def start(self, force_build: bool) -> None:
        for name in (
            "logs/agent",
            "logs/verifier",
            "logs/artifacts",
            *(name for name in OURS if name != "app"),
        ):
            (self._root / name).mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.environment_dir / "files", self._root / "app")

    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = self._place(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, target)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._place(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy2(self._place(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._place(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        given = {
            name: value
            for name, value in os.environ.items()
            if name in {"PATH", "LANG"} or "CODELOOP" in name
        }
        process = await asyncio.create_subprocess_exec(
            *self._bubble(cwd or "/app"),
            *("bash", "-c", command),
            env={**given, "HOME": "/home", **(env or {})},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stdout, stderr = await asyncio.wait_for(process.communicate(), timeout_sec)
        return ExecResult(
            stdout=stdout.decode(), stderr=stderr.decode(), return_code=process.returncode or 0
        )
