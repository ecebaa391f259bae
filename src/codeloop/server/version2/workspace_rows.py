"""The rows of version 2 for the server, directories, files, terminals, commands and git."""

from codeloop.schema.api.files import FILE_LIST, FS_FIND, VCS_STATUS, FindFiles
from codeloop.schema.api.process import INSTANCE_DISPOSE
from codeloop.schema.api.project import LOCATION_GET, PROJECT_LIST
from codeloop.schema.api.pty import (
    PTY_CREATE,
    PTY_GET,
    PTY_LIST,
    PTY_REMOVE,
    PTY_SHELLS,
    PTY_TICKET,
    PTY_UPDATE,
    CreatePty,
)
from codeloop.schema.api.server_operations import (
    GIT_INIT,
    GLOBAL_CONFIG_UPDATE,
    PROJECT_UPDATE,
    UpdateGlobalConfig,
    UpdateProject,
)
from codeloop.schema.operation import Constant, NoArguments, Unsupported
from codeloop.server.version2 import arguments as takes
from codeloop.server.version2.catalog_forms import (
    translate_entries,
    translate_project,
    translate_projects,
)
from codeloop.server.version2.row import Forward, RowText


def make_create_pty(args: takes.CreatePty2) -> CreatePty:
    """Return the request for a terminal in the form of version 1."""
    return CreatePty(
        command=args.command,
        args=args.args or [],
        cwd=args.cwd,
        title=args.title,
        env=args.env or {},
    )


def make_update_project(args: takes.UpdateProject2) -> UpdateProject:
    """Return the change of a project in the form of version 1."""
    return UpdateProject(
        project_id=args.project_id, name=args.name, icon=args.icon, commands=args.commands
    )


_NO_KEPT_TERMINALS = Unsupported(
    "Terminals end with the server here, and are not handed over. Open one at /api/pty."
)
_NO_PAIRING = Unsupported(
    "A browser is let in by the link that `codeloop serve` and `codeloop web` print."
)
WORKSPACE_ROWS: tuple[RowText, ...] = (
    ("plain v2.server.info GET /api/info", NoArguments, "places:get_server_info"),
    ("plain v2.health.get GET /api/health", NoArguments, Constant({"healthy": True})),
    ("plain v2.location.get GET /api/location", NoArguments, Forward(LOCATION_GET)),
    ("none v2.location.reload POST /api/location/reload", NoArguments, Forward(INSTANCE_DISPOSE)),
    ("plain v2.debug.location.list GET /api/debug/location", NoArguments, "places:list_locations"),
    (
        "none v2.debug.location.evict DELETE /api/debug/location",
        NoArguments,
        Forward(INSTANCE_DISPOSE),
    ),
    ("plain v2.config.get GET /api/config", NoArguments, "places:get_config"),
    ("plain v2.config.shells GET /api/config/shell", NoArguments, Forward(PTY_SHELLS)),
    (
        "none v2.config.update PATCH /api/experimental/config",
        takes.UpdateShellSetting,
        Forward(
            GLOBAL_CONFIG_UPDATE, take=lambda args: UpdateGlobalConfig(config={"shell": args.shell})
        ),
    ),
    ("plain v2.fs.read GET /api/fs/read/{path}", takes.ReadFile2, "files:read_file"),
    (
        "located v2.fs.list GET /api/fs/list",
        takes.ListFolder2,
        Forward(FILE_LIST, translate_entries),
    ),
    (
        "located v2.fs.find GET /api/fs/find",
        FindFiles,
        Forward(FS_FIND, lambda found: translate_entries(found.data)),
    ),
    ("located v2.fs.write POST /api/experimental/fs/write", NoArguments, ""),
    ("located v2.pty.list GET /api/pty", NoArguments, Forward(PTY_LIST)),
    (
        "located v2.pty.create POST /api/pty",
        takes.CreatePty2,
        Forward(PTY_CREATE, take=make_create_pty),
    ),
    ("located v2.pty.get GET /api/pty/{ptyID}", takes.PtyId2, Forward(PTY_GET)),
    ("located v2.pty.update PUT /api/pty/{ptyID}", takes.UpdatePty2, Forward(PTY_UPDATE)),
    ("none v2.pty.remove DELETE /api/pty/{ptyID}", takes.PtyId2, Forward(PTY_REMOVE)),
    (
        "located v2.pty.connectToken POST /api/pty/{ptyID}/connect-token",
        takes.PtyId2,
        Forward(PTY_TICKET),
    ),
    ("located v2.shell.list GET /api/shell", NoArguments, "shells:list_shells"),
    ("located v2.shell.create POST /api/shell", takes.CreateShell, "shells:create_shell"),
    ("located v2.shell.get GET /api/shell/{id}", takes.ShellId, "shells:get_shell"),
    ("none v2.shell.remove DELETE /api/shell/{id}", takes.ShellId, "shells:remove_shell"),
    ("located v2.shell.output GET /api/shell/{id}/output", takes.ReadShell, "shells:read_output"),
    ("located v2.vcs.get GET /api/vcs", NoArguments, "repositories:get_vcs"),
    ("located v2.vcs.base GET /api/vcs/base", NoArguments, "repositories:get_base"),
    ("located v2.vcs.status GET /api/vcs/status", NoArguments, Forward(VCS_STATUS)),
    ("located v2.vcs.diff GET /api/vcs/diff", takes.DiffVcs, "repositories:diff_work_tree"),
    (
        "located v2.vcs.branch.list GET /api/vcs/branch",
        takes.ListBranches,
        "repositories:list_branches",
    ),
    ("none v2.vcs.init POST /api/vcs/init", takes.InitVcs, Forward(GIT_INIT)),
    ("plain v2.worktree.list GET /api/worktree", takes.ProjectId2, "repositories:list_worktrees"),
    (
        "plain v2.worktree.create POST /api/worktree",
        takes.CreateWorktree2,
        "repositories:create_worktree",
    ),
    (
        "none v2.worktree.remove DELETE /api/worktree",
        takes.RemoveWorktree2,
        "repositories:remove_worktree",
    ),
    (
        "none v2.worktree.refresh POST /api/worktree/refresh",
        takes.ProjectId2,
        "repositories:refresh_worktrees",
    ),
    (
        "plain v2.project.list GET /api/project",
        NoArguments,
        Forward(PROJECT_LIST, translate_projects),
    ),
    (
        "plain v2.project.update PATCH /api/project/{projectID}",
        takes.UpdateProject2,
        Forward(PROJECT_UPDATE, translate_project, make_update_project),
    ),
    (
        "plain v2.migration.v1.status GET /api/experimental/migration/v1",
        NoArguments,
        Constant({"status": "completed"}),
    ),
    (
        "data v2.experimental.persistentPty.read GET /api/experimental/session/{sessionID}/terminal/read",
        takes.SessionTerminal,
        Constant(None),
    ),
    (
        "data v2.experimental.persistentPty.list GET /api/experimental/session/{sessionID}/terminal",
        takes.SessionTerminal,
        Constant([]),
    ),
    (
        "data v2.experimental.persistentPty.create POST /api/experimental/session/{sessionID}/terminal",
        takes.SessionTerminal,
        _NO_KEPT_TERMINALS,
    ),
    (
        "none v2.experimental.persistentPty.shutdown POST /api/experimental/persistent-pty/shutdown",
        NoArguments,
        Constant(None),
    ),
    (
        "plain v2.experimental.persistentPty.handoff POST /api/experimental/persistent-pty/handoff",
        NoArguments,
        Constant({"handoff": None}),
    ),
    (
        "data v2.experimental.persistentPty.get GET /api/experimental/persistent-pty/{ptyID}",
        takes.KeptTerminal,
        "places:refuse_kept_terminal",
    ),
    (
        "data v2.experimental.persistentPty.update PUT /api/experimental/persistent-pty/{ptyID}",
        takes.KeptTerminal,
        "places:refuse_kept_terminal",
    ),
    (
        "none v2.experimental.persistentPty.remove DELETE /api/experimental/persistent-pty/{ptyID}",
        takes.KeptTerminal,
        "places:refuse_kept_terminal",
    ),
    (
        "data v2.experimental.persistentPty.snapshot GET /api/experimental/persistent-pty/{ptyID}/snapshot",
        takes.KeptTerminal,
        "places:refuse_kept_terminal",
    ),
    (
        "data v2.experimental.persistentPty.connectToken POST /api/experimental/persistent-pty/{ptyID}/connect-token",
        takes.KeptTerminal,
        "places:refuse_kept_terminal",
    ),
    (
        "plain v2.rpc.call POST /api/rpc/{rpcID}/{method}",
        takes.RpcCall,
        Unsupported(
            "Terminal plugins of OpenCode need its own terminal; there are none to call here."
        ),
    ),
    ("plain v2.server.pair POST /api/pair", NoArguments, _NO_PAIRING),
    ("plain v2.server.connect GET /auth/connect/{code}", takes.PairingCode, _NO_PAIRING),
    (
        "data v2.voice.session POST /api/experimental/voice/session",
        takes.VoiceSession,
        Unsupported("There are no conversations by voice here. Send text."),
    ),
)
"""See `row`: how the answer is wrapped, id, method and path; arguments; what answers it."""
