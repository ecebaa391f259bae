"""Handlers that only clients of a server use, and the table of their modules.

The command line and the terminal UI don't need them, so their operations are imported only with this table.
"""

from codeloop.schema import server_operation as operation
from codeloop.schema.operation import AnyOperation

HANDLER_MODULES: dict[str, tuple[AnyOperation, ...]] = {
    "app.handlers.server_only.global_config": (operation.GLOBAL_CONFIG_GET, operation.GLOBAL_CONFIG_UPDATE),
    "app.handlers.server_only.project_details": (operation.PROJECT_UPDATE, operation.GIT_INIT),
    "app.handlers.server_only.unsupported": (
        operation.UPGRADE,
        operation.MOVE_SESSION,
        operation.CONSOLE_ORGS,
        operation.CONSOLE_SWITCH,
        operation.SESSION_BACKGROUND,
        operation.SYNC_START,
        operation.SYNC_REPLAY,
        operation.SYNC_STEAL,
        operation.SYNC_HISTORY,
        operation.TUI_NEXT,
        operation.TUI_RESPONSE,
        operation.WORKSPACE_ADAPTERS,
        operation.WORKSPACE_CREATE,
        operation.WORKSPACE_SYNC,
        operation.WORKSPACE_REMOVE,
        operation.WORKSPACE_WARP,
    ),
    "app.handlers.server_only.all_sessions": (operation.GLOBAL_SESSIONS,),
    "app.handlers.server_only.patch": (operation.VCS_DIFF_RAW, operation.VCS_APPLY),
    "app.handlers.worktrees.create": (operation.WORKTREE_LIST, operation.WORKTREE_CREATE),
    "app.handlers.worktrees.fill": (operation.WORKTREE_COPY,),
    "app.handlers.worktrees.copies": (
        operation.COPY_CREATE,
        operation.COPY_REMOVE,
        operation.COPY_REFRESH,
        operation.COPY_NAME,
    ),
    "app.handlers.worktrees.overview": (operation.WORKTREE_OVERVIEW, operation.WORKTREE_DIFF),
    "app.handlers.worktrees.remove": (operation.WORKTREE_REMOVE, operation.WORKTREE_RESET),
    "app.handlers.worktrees.merge": (operation.WORKTREE_MERGE, operation.WORKTREE_REBASE),
}
"""The modules with handlers, each with the operations that it handles. A module is imported for its first request."""
MODULES_BY_OPERATION = {op.id: module for module, operations in HANDLER_MODULES.items() for op in operations}
