"""A sandbox that works on this machine: what enforces it, and what it does without."""

from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from codeloop.workspace.sandbox.git_folders import PreparedGit
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.process_launcher import ProcessStarter

Backend = Literal["namespaces", "bubblewrap", "landlock", "sandbox-exec"]
MOUNTING_BACKENDS = ("namespaces", "bubblewrap")
"""Those in which folders are mounted over others."""


class SandboxUnavailable(OSError):
    """No sandbox works on this machine; the text gives each backend's reason."""


class SandboxEnvironment(NamedTuple):
    """The environment of a program in a sandbox, and the user's variables that it does not hold."""

    variables: dict[str, str]
    hidden: dict[str, str]


class Sandbox(Struct, frozen=True):
    """A working sandbox.

    `backend`: what enforces it; `starter` starts programs in it; `identities`: those of the files
    at its paths when it was made, which show whether one was replaced since; `git`: the private git
    folders that are mounted in it.
    """

    backend: Backend
    policy: SandboxPolicy
    starter: ProcessStarter
    identities: tuple[bytes, ...]
    git: PreparedGit = PreparedGit()

    @property
    def covered_folders(self) -> tuple[Path, ...]:
        """The git directories that its commands don't write to."""
        return self.policy.git_folders if self.git.mounts else ()

    @property
    def own_network(self) -> ProcessStarter | None:
        """The starter that opens sockets in its own network;
        None: it has the shared one, or under Landlock none.
        """
        # A network namespace can't be handed to bubblewrap, which starts as another user.
        return self.starter if self.backend in {"bubblewrap", "sandbox-exec"} else None

    @property
    def has_private_folders(self) -> bool:
        """Whether private folders are mounted as `/tmp`, the home and caches;
        otherwise variables point to some.
        """
        return self.backend in MOUNTING_BACKENDS

    @property
    def lacks(self) -> frozenset[str]:
        """What it does without on this machine, see `Confinement` in `launcher/confine.py`."""
        # Two sandboxes can't mount the same layer, and bubblewrap makes each by itself.
        has_layers = self.backend != "bubblewrap" or not self.policy.layered
        return self.starter.lacks if has_layers else self.starter.lacks | {"layers"}

    @property
    def weakness(self) -> str:
        """The reason why its commands need permission as if there were no sandbox;
        "" where it protects.
        """
        # The start-up files of the user's shell lie in the home.
        if self.policy.holds_home:
            return "the project holds your home, with all that your own programs start from"
        # Landlock can't hide a file in a writable folder.
        if self.backend == "landlock" and self.policy.has_secrets:
            return "it can't hide the secrets of this project (.env and the like)"
        return ""

    @property
    def is_protective(self) -> bool:
        """Whether it protects, so that its commands need no permission."""
        return not self.weakness
