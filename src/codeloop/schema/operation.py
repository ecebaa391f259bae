"""The table of the operations that clients can request; routes, the OpenAPI document and clients are made from it."""

from typing import Any, Generic, Literal, TypeVar, cast

from msgspec import Struct, ValidationError, convert

from codeloop.schema.api.agents import Agent, Command, Skill
from codeloop.schema.api.client_tools import (
    AnswerToolCall,
    AskForToolCall,
    OfferTools,
    ReportToolCall,
    ToolPermission,
    ToolsOffered,
    WithdrawTools,
)
from codeloop.schema.api.files import (
    File,
    FileContent,
    FileNode,
    FileQuery,
    FindFiles,
    FindSymbols,
    FindText,
    FoundFiles,
    FoundLine,
    Symbol,
    VcsDiffQuery,
    VcsFileDiff,
    VcsFileStatus,
    VcsInfo,
)
from codeloop.schema.api.mcp import (
    AddMcp,
    CompleteMcpPrompt,
    McpAuthCode,
    McpAuthRemoved,
    McpAuthStart,
    McpName,
    McpPromptCompletion,
    McpResource,
    MCPStatus,
)
from codeloop.schema.api.project import (
    ConsoleState,
    ExperimentalCapabilities,
    FormatterStatus,
    Health,
    LocationInfo,
    LSPStatus,
    MemoryNote,
    PathInfo,
    ProjectDirectory,
    ProjectId,
    ProjectInfo,
    ToolListItem,
    ToolListQuery,
    UpdateConfig,
    WriteLog,
)
from codeloop.schema.api.providers import (
    AddProvider,
    FinishSignIn,
    KnownProviders,
    ProviderAuthMethod,
    ProviderId,
    ServerAddress,
    ServerModels,
    SetAuth,
    StartedSignIn,
    StartSignIn,
    UsableProviders,
)
from codeloop.schema.api.pty import CreatePty, Pty, PtyId, PtyShell, PtyTicketConnectToken, UpdatePty
from codeloop.schema.api.session_inputs import (
    AnswerPermission,
    AnswerQuestion,
    InitSession,
    InvokeCommand,
    MessageWithParts,
    Prompt,
    RejectQuestion,
    RespondPermission,
    RunShell,
    Summarize,
)
from codeloop.schema.api.session_reports import (
    SessionContext,
    SessionCost,
    SessionOverview,
    SessionOverviewQuery,
    ShareableSession,
    Stats,
    StatsQuery,
)
from codeloop.schema.api.session_requests import (
    CreateSession,
    FindInSession,
    ForkSession,
    ImportedSession,
    ImportSession,
    ListAllSessions,
    ListMessages,
    ListSessions,
    MessageId,
    PartId,
    RevertedSession,
    RevertSession,
    SearchResult,
    SearchSessions,
    SessionDiffQuery,
    SessionId,
    StoppedSessions,
    TextMatches,
    UndoFiles,
    UndoneFiles,
    UnrevertSession,
    UpdatePart,
    UpdateSession,
)
from codeloop.schema.api.tui import AppendPrompt, ExecuteCommand, PublishTui, ShowToast
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import Status
from codeloop.schema.message import Session, SnapshotFileDiff, Todo
from codeloop.schema.part import Part
from codeloop.schema.permission import PermissionQuery, PermissionRequest, PermissionsInForce, RevokeGrant
from codeloop.schema.question import QuestionRequest
from codeloop.schema.wire import JSON, Wire


class NoArguments(Wire):
    """Takes nothing."""


Takes = TypeVar("Takes", bound=Wire)
Gives = TypeVar("Gives")


class Operation(Struct, Generic[Takes, Gives], frozen=True):
    """One row: fields of `takes` that are named in `path` come from there, the others from the query or the body.

    `body`: the field that is the whole body. `scope`: answered by the project of a directory, or by the process.
    `has_body`: the arguments of a DELETE come in its body, not in its query.
    """

    id: str
    method: Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
    path: str
    takes: type[Takes]
    gives: type[Gives]
    body: str | None = None
    scope: Literal["project", "process"] = "project"
    has_body: bool = False

    @property
    def takes_body(self) -> bool:
        """Whether the arguments come in a request's body."""
        return self.has_body or self.method in {"POST", "PUT", "PATCH"}

    def convert_arguments(self, path: JSON | None, query: JSON | None, body: Any) -> Takes:
        """Return the arguments that a program in this process names as a request would. Raises OperationError."""
        values: JSON = {**(query or {}), **(path or {})}
        if self.body is None:
            values |= body or {}
        else:
            values[self.takes.__struct_encode_fields__[self.takes.__struct_fields__.index(self.body)]] = body
        try:
            return convert(values, self.takes, strict=False)
        except (ValidationError, TypeError) as error:
            raise OperationError("BadRequest", f"{self.id}: {error}") from error


AnyOperation = Operation[Any, Any]
# A type checker does not take a union for a type.
_PART = cast("type[Part]", Part)

# The order counts: `/session/{sessionID}` matches `/session/status` too, so the fixed path stands before it.
SESSION_CREATE = Operation("session.create", "POST", "/session", CreateSession, Session)
SESSION_LIST = Operation("session.list", "GET", "/session", ListSessions, list[Session])
SESSION_STATUS = Operation("session.status", "GET", "/session/status", NoArguments, dict[str, Status])
SESSION_SEARCH = Operation("session.search", "GET", "/session/search", SearchSessions, SearchResult)
SESSION_EVERYTHING = Operation("session.everything", "GET", "/session/everything", ListAllSessions, list[Session])
SESSION_STATS = Operation("session.stats", "GET", "/session/stats", StatsQuery, Stats)
MEMORY_LIST = Operation("memory.list", "GET", "/memory", NoArguments, list[MemoryNote])
STOP_ALL = Operation("session.stopAll", "POST", "/session/stop-all", NoArguments, StoppedSessions)
SESSION_OVERVIEW = Operation(
    "session.overview", "GET", "/session/overview", SessionOverviewQuery, list[SessionOverview]
)
SESSION_IMPORT = Operation("session.import", "POST", "/session/import", ImportSession, ImportedSession)
SESSION_GET = Operation("session.get", "GET", "/session/{sessionID}", SessionId, Session)
SESSION_UPDATE = Operation("session.update", "PATCH", "/session/{sessionID}", UpdateSession, Session)
SESSION_DELETE = Operation("session.delete", "DELETE", "/session/{sessionID}", SessionId, bool)
SESSION_CHILDREN = Operation("session.children", "GET", "/session/{sessionID}/children", SessionId, list[Session])
SESSION_FIND = Operation("session.find", "GET", "/session/{sessionID}/find", FindInSession, TextMatches)
SESSION_COST = Operation("session.cost", "GET", "/session/{sessionID}/cost", SessionId, SessionCost)
SESSION_CONTEXT = Operation("session.context", "GET", "/session/{sessionID}/context", SessionId, SessionContext)
SESSION_SHAREABLE = Operation("session.shareable", "GET", "/session/{sessionID}/shareable", SessionId, ShareableSession)
SESSION_TODO = Operation("session.todo", "GET", "/session/{sessionID}/todo", SessionId, list[Todo])
SESSION_FORK = Operation("session.fork", "POST", "/session/{sessionID}/fork", ForkSession, Session)
SESSION_QUEUED = Operation("session.queued", "GET", "/session/{sessionID}/queued", SessionId, list[MessageWithParts])
SESSION_MESSAGES = Operation(
    "session.messages", "GET", "/session/{sessionID}/message", ListMessages, list[MessageWithParts]
)
MESSAGE_GET = Operation(
    "session.message", "GET", "/session/{sessionID}/message/{messageID}", MessageId, MessageWithParts
)
MESSAGE_DELETE = Operation(
    "session.deleteMessage", "DELETE", "/session/{sessionID}/message/{messageID}", MessageId, bool
)
PART_UPDATE = Operation(
    "part.update",
    "PATCH",
    "/session/{sessionID}/message/{messageID}/part/{partID}",
    UpdatePart,
    _PART,
    body="part",
)
PART_DELETE = Operation("part.delete", "DELETE", "/session/{sessionID}/message/{messageID}/part/{partID}", PartId, bool)
PROMPT = Operation("session.prompt", "POST", "/session/{sessionID}/message", Prompt, MessageWithParts)
PROMPT_ASYNC = Operation("session.prompt_async", "POST", "/session/{sessionID}/prompt_async", Prompt, type(None))
COMMAND = Operation("session.command", "POST", "/session/{sessionID}/command", InvokeCommand, MessageWithParts)
SUMMARIZE = Operation("session.summarize", "POST", "/session/{sessionID}/summarize", Summarize, bool)
ABORT = Operation("session.abort", "POST", "/session/{sessionID}/abort", SessionId, bool)
PERMISSION_LIST = Operation("permission.list", "GET", "/permission", NoArguments, list[PermissionRequest])
PERMISSION_RULES = Operation("permission.rules", "GET", "/permission/rules", PermissionQuery, PermissionsInForce)
PERMISSION_REVOKE = Operation("permission.revoke", "DELETE", "/permission/grant/{grantID}", RevokeGrant, bool)
PERMISSION_REPLY = Operation("permission.reply", "POST", "/permission/{requestID}/reply", AnswerPermission, bool)
QUESTION_LIST = Operation("question.list", "GET", "/question", NoArguments, list[QuestionRequest])
QUESTION_REPLY = Operation("question.reply", "POST", "/question/{requestID}/reply", AnswerQuestion, bool)
QUESTION_REJECT = Operation("question.reject", "POST", "/question/{requestID}/reject", RejectQuestion, bool)
AGENT_LIST = Operation("app.agents", "GET", "/agent", NoArguments, list[Agent])
COMMAND_LIST = Operation("command.list", "GET", "/command", NoArguments, list[Command])
SKILL_LIST = Operation("app.skills", "GET", "/skill", NoArguments, list[Skill])
SESSION_REVERT = Operation("session.revert", "POST", "/session/{sessionID}/revert", RevertSession, RevertedSession)
SESSION_UNREVERT = Operation(
    "session.unrevert", "POST", "/session/{sessionID}/unrevert", UnrevertSession, RevertedSession
)
UNDO_FILES = Operation("session.undoFiles", "POST", "/session/{sessionID}/undo", UndoFiles, UndoneFiles)
SESSION_DIFF = Operation("session.diff", "GET", "/session/{sessionID}/diff", SessionDiffQuery, list[SnapshotFileDiff])
SESSION_SHELL = Operation("session.shell", "POST", "/session/{sessionID}/shell", RunShell, MessageWithParts)
SESSION_INIT = Operation("session.init", "POST", "/session/{sessionID}/init", InitSession, bool)
SESSION_SHARE = Operation("session.share", "POST", "/session/{sessionID}/share", SessionId, Session)
SESSION_UNSHARE = Operation("session.unshare", "DELETE", "/session/{sessionID}/share", SessionId, Session)
PERMISSION_RESPOND = Operation(
    "permission.respond", "POST", "/session/{sessionID}/permissions/{permissionID}", RespondPermission, bool
)
TOOLS_OFFER = Operation("session.tools.offer", "PUT", "/session/{sessionID}/tools/{leaseID}", OfferTools, ToolsOffered)
TOOLS_WITHDRAW = Operation(
    "session.tools.withdraw", "DELETE", "/session/{sessionID}/tools/{leaseID}", WithdrawTools, bool
)
TOOL_ANSWER = Operation(
    "session.tools.answer", "POST", "/session/{sessionID}/tools/{leaseID}/{requestID}/answer", AnswerToolCall, bool
)
TOOL_ASK = Operation(
    "session.tools.ask", "POST", "/session/{sessionID}/tools/{leaseID}/{requestID}/ask", AskForToolCall, ToolPermission
)
TOOL_REPORT = Operation(
    "session.tools.report", "POST", "/session/{sessionID}/tools/{leaseID}/{requestID}/report", ReportToolCall, bool
)
PATH_GET = Operation("path.get", "GET", "/path", NoArguments, PathInfo)
PROJECT_LIST = Operation("project.list", "GET", "/project", NoArguments, list[ProjectInfo])
PROJECT_CURRENT = Operation("project.current", "GET", "/project/current", NoArguments, ProjectInfo)
PROJECT_DIRECTORIES = Operation(
    "project.directories", "GET", "/project/{projectID}/directories", ProjectId, list[ProjectDirectory]
)
CONFIG_GET = Operation("config.get", "GET", "/config", NoArguments, JSON)
CONFIG_UPDATE = Operation("config.update", "PATCH", "/config", UpdateConfig, JSON, body="config")
CONFIG_SETTINGS = Operation("config.settings", "GET", "/config/settings", NoArguments, JSON)
CONFIG_ORIGINS = Operation("config.origins", "GET", "/config/origins", NoArguments, dict[str, str])
CONFIG_WARNINGS = Operation("config.warnings", "GET", "/config/warnings", NoArguments, list[str])
CONFIG_PROVIDERS = Operation("config.providers", "GET", "/config/providers", NoArguments, UsableProviders)
PROVIDER_LIST = Operation("provider.list", "GET", "/provider", NoArguments, KnownProviders)
PROVIDER_MODELS = Operation("provider.models", "POST", "/provider/models", ServerAddress, ServerModels)
PROVIDER_ADD = Operation("provider.add", "POST", "/provider", AddProvider, bool)
PROVIDER_AUTH = Operation("provider.auth", "GET", "/provider/auth", NoArguments, dict[str, list[ProviderAuthMethod]])
PROVIDER_AUTHORIZE = Operation(
    "provider.oauth.authorize", "POST", "/provider/{providerID}/oauth/authorize", StartSignIn, StartedSignIn
)
PROVIDER_CALLBACK = Operation(
    "provider.oauth.callback", "POST", "/provider/{providerID}/oauth/callback", FinishSignIn, bool
)
AUTH_SET = Operation("auth.set", "PUT", "/auth/{providerID}", SetAuth, bool, body="auth")
AUTH_REMOVE = Operation("auth.remove", "DELETE", "/auth/{providerID}", ProviderId, bool)
LOG = Operation("app.log", "POST", "/log", WriteLog, bool)
LSP_STATUS = Operation("lsp.status", "GET", "/lsp", NoArguments, list[LSPStatus])
FORMATTER_STATUS = Operation("formatter.status", "GET", "/formatter", NoArguments, list[FormatterStatus])
MCP_STATUS = Operation("mcp.status", "GET", "/mcp", NoArguments, dict[str, MCPStatus])
MCP_ADD = Operation("mcp.add", "POST", "/mcp", AddMcp, dict[str, MCPStatus])
MCP_CONNECT = Operation("mcp.connect", "POST", "/mcp/{name}/connect", McpName, bool)
MCP_DISCONNECT = Operation("mcp.disconnect", "POST", "/mcp/{name}/disconnect", McpName, bool)
MCP_AUTH_START = Operation("mcp.auth.start", "POST", "/mcp/{name}/auth", McpName, McpAuthStart)
MCP_AUTH_REMOVE = Operation("mcp.auth.remove", "DELETE", "/mcp/{name}/auth", McpName, McpAuthRemoved)
MCP_AUTH_CALLBACK = Operation("mcp.auth.callback", "POST", "/mcp/{name}/auth/callback", McpAuthCode, MCPStatus)
MCP_AUTH_AUTHENTICATE = Operation("mcp.auth.authenticate", "POST", "/mcp/{name}/auth/authenticate", McpName, MCPStatus)
MCP_COMPLETE = Operation("mcp.complete", "POST", "/mcp/complete", CompleteMcpPrompt, McpPromptCompletion)
VCS_GET = Operation("vcs.get", "GET", "/vcs", NoArguments, VcsInfo)
VCS_STATUS = Operation("vcs.status", "GET", "/vcs/status", NoArguments, list[VcsFileStatus])
VCS_DIFF = Operation("vcs.diff", "GET", "/vcs/diff", VcsDiffQuery, list[VcsFileDiff])
FILE_LIST = Operation("file.list", "GET", "/file", FileQuery, list[FileNode])
FILE_READ = Operation("file.read", "GET", "/file/content", FileQuery, FileContent)
FILE_STATUS = Operation("file.status", "GET", "/file/status", NoArguments, list[File])
FIND_TEXT = Operation("find.text", "GET", "/find", FindText, list[FoundLine])
FIND_FILES = Operation("find.files", "GET", "/find/file", FindFiles, list[str])
FIND_SYMBOLS = Operation("find.symbols", "GET", "/find/symbol", FindSymbols, list[Symbol])
LOCATION_GET = Operation("v2.location.get", "GET", "/api/location", NoArguments, LocationInfo)
FS_FIND = Operation("v2.fs.find", "GET", "/api/fs/find", FindFiles, FoundFiles)
TOOL_IDS = Operation("tool.ids", "GET", "/experimental/tool/ids", NoArguments, list[str])
TOOL_LIST = Operation("tool.list", "GET", "/experimental/tool", ToolListQuery, list[ToolListItem])
CAPABILITIES = Operation(
    "experimental.capabilities.get", "GET", "/experimental/capabilities", NoArguments, ExperimentalCapabilities
)
CONSOLE = Operation("experimental.console.get", "GET", "/experimental/console", NoArguments, ConsoleState)
RESOURCE_LIST = Operation(
    "experimental.resource.list", "GET", "/experimental/resource", NoArguments, dict[str, McpResource]
)
WORKSPACE_LIST = Operation("experimental.workspace.list", "GET", "/experimental/workspace", NoArguments, list[JSON])
WORKSPACE_STATUS = Operation(
    "experimental.workspace.status", "GET", "/experimental/workspace/status", NoArguments, list[JSON]
)
PTY_SHELLS = Operation("pty.shells", "GET", "/pty/shells", NoArguments, list[PtyShell])
PTY_LIST = Operation("pty.list", "GET", "/pty", NoArguments, list[Pty])
PTY_CREATE = Operation("pty.create", "POST", "/pty", CreatePty, Pty)
PTY_GET = Operation("pty.get", "GET", "/pty/{ptyID}", PtyId, Pty)
PTY_UPDATE = Operation("pty.update", "PUT", "/pty/{ptyID}", UpdatePty, Pty)
PTY_REMOVE = Operation("pty.remove", "DELETE", "/pty/{ptyID}", PtyId, bool)
PTY_TICKET = Operation("pty.connectToken", "POST", "/pty/{ptyID}/connect-token", PtyId, PtyTicketConnectToken)
TUI_APPEND_PROMPT = Operation("tui.appendPrompt", "POST", "/tui/append-prompt", AppendPrompt, bool)
TUI_SUBMIT_PROMPT = Operation("tui.submitPrompt", "POST", "/tui/submit-prompt", NoArguments, bool)
TUI_CLEAR_PROMPT = Operation("tui.clearPrompt", "POST", "/tui/clear-prompt", NoArguments, bool)
TUI_OPEN_HELP = Operation("tui.openHelp", "POST", "/tui/open-help", NoArguments, bool)
TUI_OPEN_SESSIONS = Operation("tui.openSessions", "POST", "/tui/open-sessions", NoArguments, bool)
TUI_OPEN_THEMES = Operation("tui.openThemes", "POST", "/tui/open-themes", NoArguments, bool)
TUI_OPEN_MODELS = Operation("tui.openModels", "POST", "/tui/open-models", NoArguments, bool)
TUI_EXECUTE = Operation("tui.executeCommand", "POST", "/tui/execute-command", ExecuteCommand, bool)
TUI_TOAST = Operation("tui.showToast", "POST", "/tui/show-toast", ShowToast, bool)
TUI_PUBLISH = Operation("tui.publish", "POST", "/tui/publish", PublishTui, bool, body="event")
TUI_SELECT = Operation("tui.selectSession", "POST", "/tui/select-session", SessionId, bool)
HEALTH = Operation("global.health", "GET", "/global/health", NoArguments, Health, scope="process")
INSTANCE_DISPOSE = Operation("instance.dispose", "POST", "/instance/dispose", NoArguments, bool, scope="process")
GLOBAL_DISPOSE = Operation("global.dispose", "POST", "/global/dispose", NoArguments, bool, scope="process")

OPERATIONS: tuple[AnyOperation, ...] = tuple(
    cast("AnyOperation", row) for row in globals().values() if isinstance(row, Operation)
)
"""All operations. If the paths of two match a request, the first one counts."""
