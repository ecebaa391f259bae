"""The rows of version 2 for sessions: what is stored, turns, inbox, events."""

from codeloop.schema.api.session_requests import SESSION_DELETE, SESSION_GET
from codeloop.schema.api.session_undo import SESSION_UNREVERT
from codeloop.schema.api.unsupported import SESSION_BACKGROUND
from codeloop.schema.operation import NoArguments
from codeloop.server.version2 import arguments as takes
from codeloop.server.version2 import session_arguments as session
from codeloop.server.version2.row import Forward, RowText
from codeloop.server.version2.session_forms import translate_session

SESSION_ROWS: tuple[RowText, ...] = (
    ("plain v2.session.list GET /api/session", session.ListSessions2, "sessions:list_sessions"),
    ("data v2.session.create POST /api/session", session.CreateSession2, "sessions:create_session"),
    (
        "data v2.session.active GET /api/session/active",
        NoArguments,
        "sessions:list_active_sessions",
    ),
    (
        "data v2.session.get GET /api/session/{sessionID}",
        session.SessionId2,
        Forward(SESSION_GET, translate_session),
    ),
    (
        "none v2.session.update PATCH /api/session/{sessionID}",
        session.UpdateSession2,
        "sessions:update_session",
    ),
    (
        "none v2.session.remove DELETE /api/session/{sessionID}",
        session.SessionId2,
        Forward(SESSION_DELETE),
    ),
    (
        "data v2.session.fork POST /api/session/{sessionID}/fork",
        session.ForkSession2,
        "sessions:fork_session",
    ),
    (
        "none v2.session.move POST /api/session/{sessionID}/move",
        session.MoveSession2,
        "sessions:move_session",
    ),
    (
        "none v2.session.switchAgent POST /api/session/{sessionID}/agent",
        session.SwitchAgent,
        "sessions:switch_agent",
    ),
    (
        "none v2.session.switchModel POST /api/session/{sessionID}/model",
        session.SwitchModel,
        "sessions:switch_model",
    ),
    (
        "none v2.session.view POST /api/session/{sessionID}/view",
        session.View2,
        "sessions:note_view",
    ),
    (
        "none v2.session.environment PUT /api/session/{sessionID}/environment",
        session.Environment2,
        "sessions:set_environment",
    ),
    (
        "data v2.session.stats GET /api/experimental/session/stats",
        session.Stats2,
        "reports:sum_stats",
    ),
    (
        "data v2.session.import POST /api/experimental/session/import",
        session.ImportSession2,
        "reports:import_session",
    ),
    (
        "data v2.session.export GET /api/experimental/session/{sessionID}/export",
        session.ExportSession2,
        "reports:export_session",
    ),
    (
        "data v2.session.diff GET /api/session/{sessionID}/diff",
        session.DiffSession2,
        "reports:diff_session",
    ),
    (
        "data v2.session.generate POST /api/session/{sessionID}/generate",
        session.Generate2,
        "reports:generate_in_session",
    ),
    (
        "data v2.generate.text POST /api/experimental/generate",
        takes.Generate,
        "reports:generate_text",
    ),
    (
        "data v2.session.prompt POST /api/session/{sessionID}/prompt",
        session.Prompt2,
        "turns:admit_prompt",
    ),
    (
        "data v2.session.synthetic POST /api/session/{sessionID}/synthetic",
        session.Synthetic2,
        "turns:admit_synthetic",
    ),
    (
        "none v2.session.command POST /api/session/{sessionID}/command",
        session.Command2,
        "turns:start_command",
    ),
    (
        "none v2.session.skill POST /api/experimental/session/{sessionID}/skill",
        session.Skill2,
        "turns:start_skill",
    ),
    (
        "none v2.session.shell POST /api/session/{sessionID}/shell",
        session.Shell2,
        "turns:start_shell_command",
    ),
    (
        "data v2.session.compact POST /api/session/{sessionID}/compact",
        session.Compact2,
        "turns:compact_session",
    ),
    (
        "none v2.session.waitForTurn POST /api/experimental/session/{sessionID}/wait",
        session.SessionId2,
        "turns:wait_for_turn",
    ),
    (
        "plain v2.session.interrupt POST /api/session/{sessionID}/interrupt",
        session.Interrupt2,
        "turns:interrupt_turn",
    ),
    (
        "none v2.session.background POST /api/session/{sessionID}/background",
        session.SessionId2,
        Forward(SESSION_BACKGROUND),
    ),
    (
        "data v2.session.inbox.list GET /api/session/{sessionID}/inbox",
        session.SessionId2,
        "inbox:list_inbox",
    ),
    (
        "none v2.session.inbox.cancel DELETE /api/session/{sessionID}/inbox/{inboxID}",
        session.InboxId,
        "inbox:cancel_item",
    ),
    (
        "none v2.session.inbox.update PATCH /api/session/{sessionID}/inbox/{inboxID}",
        session.ChangeInbox,
        "inbox:change_item",
    ),
    (
        "data v2.instructions.list GET /api/experimental/session/{sessionID}/instructions/entries",
        session.SessionId2,
        "sessions:list_instructions",
    ),
    (
        "none v2.instructions.put PUT /api/experimental/session/{sessionID}/instructions/entries/{key}",
        session.PutInstruction,
        "sessions:put_instruction",
    ),
    (
        "none v2.instructions.remove DELETE /api/experimental/session/{sessionID}/instructions/entries/{key}",
        session.InstructionKey,
        "sessions:remove_instruction",
    ),
    ("plain v2.session.log GET /api/experimental/session/{sessionID}/log", session.FollowLog, ""),
    ("plain v2.event.subscribe GET /api/event", NoArguments, ""),
    (
        "data v2.session.revert.stage POST /api/session/{sessionID}/revert/stage",
        session.StageRevert,
        "history:stage_revert",
    ),
    (
        "none v2.session.revert.delete DELETE /api/session/{sessionID}/revert",
        session.SessionId2,
        Forward(SESSION_UNREVERT),
    ),
    (
        "none v2.session.revert.commit POST /api/session/{sessionID}/revert/commit",
        session.SessionId2,
        "history:commit_revert",
    ),
    (
        "data v2.session.context GET /api/session/{sessionID}/context",
        session.SessionId2,
        "history:list_context_messages",
    ),
    (
        "plain v2.session.messages GET /api/session/{sessionID}/message",
        session.ListMessages2,
        "history:list_messages",
    ),
    (
        "data v2.session.message GET /api/session/{sessionID}/message/{messageID}",
        session.MessageId2,
        "history:get_message",
    ),
    (
        "none v2.session.wait POST /api/session/{sessionID}/wait",
        session.SessionId2,
        "turns:wait_for_turn",
    ),
    (
        "none v2.session.revert.clear POST /api/session/{sessionID}/revert/clear",
        session.SessionId2,
        Forward(SESSION_UNREVERT),
    ),
    (
        "plain v2.session.history GET /api/session/{sessionID}/history",
        session.SessionId2,
        "history:refuse_history",
    ),
    (
        "plain v2.session.events GET /api/session/{sessionID}/event",
        session.SessionId2,
        "history:refuse_history",
    ),
)
"""See `row`: how the answer is wrapped, id, method and path; arguments; what answers it."""
