"""The rows of version 2 for agents, models, services that users sign in to, extensions,
and what waits for an answer of the user.
"""

from codeloop.schema.api.agents import AGENT_LIST, COMMAND_LIST, SKILL_LIST
from codeloop.schema.api.answers import PERMISSION_REVOKE, QUESTION_LIST
from codeloop.schema.api.mcp import (
    MCP_ADD,
    MCP_CONNECT,
    MCP_DISCONNECT,
    MCP_STATUS,
    AddMcp,
    McpName,
)
from codeloop.schema.api.providers import AUTH_REMOVE, CONFIG_PROVIDERS, ProviderId
from codeloop.schema.operation import Constant, NoArguments, Unsupported
from codeloop.schema.permission import RevokeGrant
from codeloop.server.version2 import arguments as takes
from codeloop.server.version2 import session_arguments as session
from codeloop.server.version2.catalog_forms import (
    read_server,
    translate_agent,
    translate_command,
    translate_models,
    translate_providers,
    translate_servers,
    translate_skill,
)
from codeloop.server.version2.row import Forward, RowText, each

CATALOG_ROWS: tuple[RowText, ...] = (
    (
        "located v2.agent.list GET /api/agent",
        NoArguments,
        Forward(AGENT_LIST, each(translate_agent)),
    ),
    ("located v2.agent.get GET /api/agent/{agentID}", takes.AgentId, "catalog:get_agent"),
    (
        "located v2.command.list GET /api/command",
        NoArguments,
        Forward(COMMAND_LIST, each(translate_command)),
    ),
    (
        "located v2.skill.list GET /api/skill",
        NoArguments,
        Forward(SKILL_LIST, each(translate_skill)),
    ),
    (
        "located v2.model.list GET /api/model",
        NoArguments,
        Forward(CONFIG_PROVIDERS, translate_models),
    ),
    ("located v2.model.default GET /api/model/default", NoArguments, "catalog:get_default_model"),
    (
        "located v2.provider.list GET /api/provider",
        NoArguments,
        Forward(CONFIG_PROVIDERS, translate_providers),
    ),
    (
        "located v2.provider.get GET /api/provider/{providerID}",
        takes.ProviderId2,
        "catalog:get_provider",
    ),
    ("located v2.integration.list GET /api/integration", NoArguments, "catalog:list_integrations"),
    (
        "located v2.integration.attempt.status GET /api/integration/attempt/{attemptID}",
        takes.SignInId,
        "catalog:get_attempt",
    ),
    (
        "none v2.integration.attempt.cancel DELETE /api/integration/attempt/{attemptID}",
        takes.SignInId,
        "catalog:cancel_attempt",
    ),
    (
        "none v2.integration.attempt.complete POST /api/integration/attempt/{attemptID}/complete",
        takes.FinishSignIn2,
        "catalog:finish_attempt",
    ),
    (
        "located v2.integration.get GET /api/integration/{integrationID}",
        takes.IntegrationId,
        "catalog:get_integration",
    ),
    (
        "none v2.integration.connect.key POST /api/integration/{integrationID}/connect/key",
        takes.ConnectKey,
        "catalog:connect_key",
    ),
    (
        "none v2.integration.connect.external POST /api/integration/{integrationID}/connect/external",
        takes.ConnectMethod,
        "catalog:refuse_method",
    ),
    (
        "located v2.integration.connect.oauth POST /api/integration/{integrationID}/connect/oauth",
        takes.ConnectMethod,
        "catalog:start_sign_in",
    ),
    (
        "located v2.integration.oauth.status GET /api/integration/{integrationID}/connect/oauth/{attemptID}",
        takes.SignInId,
        "catalog:get_attempt",
    ),
    (
        "none v2.integration.oauth.cancel DELETE /api/integration/{integrationID}/connect/oauth/{attemptID}",
        takes.SignInId,
        "catalog:cancel_attempt",
    ),
    (
        "none v2.integration.oauth.complete POST /api/integration/{integrationID}/connect/oauth/{attemptID}/complete",
        takes.FinishSignIn2,
        "catalog:finish_attempt",
    ),
    (
        "located v2.integration.command.connect POST /api/integration/{integrationID}/connect/command",
        takes.ConnectMethod,
        "catalog:refuse_method",
    ),
    (
        "located v2.integration.command.status GET /api/integration/{integrationID}/connect/command/{attemptID}",
        takes.SignInId,
        "catalog:get_attempt",
    ),
    (
        "none v2.integration.command.cancel DELETE /api/integration/{integrationID}/connect/command/{attemptID}",
        takes.SignInId,
        "catalog:cancel_attempt",
    ),
    (
        "none v2.integration.wellknown.add POST /api/experimental/integration/wellknown",
        takes.WellKnown,
        Unsupported(
            "A service that describes its own addresses is not asked for them. Add a provider to the configuration."
        ),
    ),
    ("data v2.credential.list GET /api/credential", NoArguments, "catalog:list_credentials"),
    (
        "data v2.credential.create POST /api/credential",
        takes.CreateCredential,
        "catalog:create_credential",
    ),
    (
        "none v2.credential.update PATCH /api/credential/{credentialID}",
        takes.LabelCredential,
        Unsupported("Credentials have no labels: there is one for each provider."),
    ),
    (
        "none v2.credential.remove DELETE /api/credential/{credentialID}",
        takes.CredentialId,
        Forward(AUTH_REMOVE, take=lambda args: ProviderId(provider_id=args.credential_id)),
    ),
    (
        "none v2.credential.activate POST /api/credential/{credentialID}/activate",
        takes.CredentialId,
        "catalog:activate_credential",
    ),
    (
        "located v2.permission.request.list GET /api/permission/request",
        NoArguments,
        "answers:list_permissions",
    ),
    (
        "data v2.permission.saved.list GET /api/permission/saved",
        takes.ListSavedPermissions,
        "answers:list_saved_permissions",
    ),
    (
        "data v2.permission.saved.update PATCH /api/permission/saved/{id}",
        takes.ChangeSavedPermission,
        "answers:change_saved_permission",
    ),
    (
        "none v2.permission.saved.remove DELETE /api/permission/saved/{id}",
        takes.SavedPermissionId,
        Forward(PERMISSION_REVOKE, take=lambda args: RevokeGrant(grant_id=args.id)),
    ),
    (
        "data v2.session.permission.create POST /api/session/{sessionID}/permission",
        takes.RequestPermission,
        "answers:ask_permission",
    ),
    (
        "data v2.session.permission.list GET /api/session/{sessionID}/permission",
        session.SessionId2,
        "answers:list_session_permissions",
    ),
    (
        "data v2.session.permission.get GET /api/session/{sessionID}/permission/{requestID}",
        takes.RequestId2,
        "answers:get_permission",
    ),
    (
        "none v2.session.permission.reply POST /api/session/{sessionID}/permission/{requestID}/reply",
        takes.ReplyPermission,
        "answers:reply_permission",
    ),
    ("located v2.form.list GET /api/form", NoArguments, "answers:list_forms"),
    (
        "data v2.session.form.list GET /api/session/{sessionID}/form",
        session.SessionId2,
        "answers:list_session_forms",
    ),
    (
        "data v2.session.form.create POST /api/session/{sessionID}/form",
        takes.CreateForm,
        "answers:create_form",
    ),
    (
        "data v2.session.form.get GET /api/session/{sessionID}/form/{formID}",
        takes.FormId,
        "answers:get_form",
    ),
    (
        "none v2.session.form.cancel DELETE /api/session/{sessionID}/form/{formID}",
        takes.CancelForm,
        "answers:cancel_form",
    ),
    (
        "none v2.session.form.reply POST /api/session/{sessionID}/form/{formID}/reply",
        takes.ReplyForm,
        "answers:reply_form",
    ),
    ("located v2.mcp.list GET /api/mcp", NoArguments, Forward(MCP_STATUS, translate_servers)),
    (
        "located v2.mcp.resource.catalog GET /api/mcp/resource",
        NoArguments,
        "catalog:list_resources",
    ),
    (
        "none v2.mcp.add PUT /api/experimental/mcp/{server}",
        takes.AddServer,
        Forward(
            MCP_ADD, take=lambda args: AddMcp(name=args.server, config=read_server(args.config))
        ),
    ),
    (
        "none v2.mcp.remove DELETE /api/experimental/mcp/{server}",
        takes.ServerName,
        "catalog:remove_server",
    ),
    (
        "none v2.mcp.connect POST /api/experimental/mcp/{server}/connect",
        takes.ServerName,
        Forward(MCP_CONNECT, take=lambda args: McpName(name=args.server)),
    ),
    (
        "none v2.mcp.disconnect POST /api/experimental/mcp/{server}/disconnect",
        takes.ServerName,
        Forward(MCP_DISCONNECT, take=lambda args: McpName(name=args.server)),
    ),
    ("located v2.plugin.list GET /api/plugin", takes.PluginTarget, "places:list_plugins"),
    ("located v2.plugin.check POST /api/plugin/check", takes.PluginTarget, "places:list_plugins"),
    (
        "none v2.plugin.update POST /api/plugin/update",
        takes.PluginTargets,
        Unsupported("Plugins are updated by `codeloop plugin`, after their code was looked at."),
    ),
    ("located v2.reference.list GET /api/reference", NoArguments, Constant([])),
    (
        "located v2.websearch.providers GET /api/websearch/provider",
        NoArguments,
        "places:list_search_services",
    ),
    ("located v2.websearch.query POST /api/websearch", takes.SearchWeb, "places:search_web"),
    (
        "located v2.question.request.list GET /api/question/request",
        NoArguments,
        Forward(QUESTION_LIST),
    ),
    (
        "data v2.session.question.list GET /api/session/{sessionID}/question",
        session.SessionId2,
        "answers:list_session_questions",
    ),
    (
        "none v2.session.question.reply POST /api/session/{sessionID}/question/{requestID}/reply",
        takes.ReplyQuestion,
        "answers:reply_question",
    ),
    (
        "none v2.session.question.reject POST /api/session/{sessionID}/question/{requestID}/reject",
        takes.RequestId2,
        "answers:reject_question",
    ),
)
"""See `row`: how the answer is wrapped, id, method and path; arguments; what answers it."""
