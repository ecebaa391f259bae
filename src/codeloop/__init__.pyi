from codeloop import sync as sync
from codeloop.extension import Context as Context
from codeloop.library.budget import Budget as Budget
from codeloop.library.errors import LimitReached as LimitReached
from codeloop.library.errors import ProjectClosed as ProjectClosed
from codeloop.library.errors import ToolRefused as ToolRefused
from codeloop.library.errors import TurnFailed as TurnFailed
from codeloop.library.errors import WrongResult as WrongResult
from codeloop.library.events import Answer as Answer
from codeloop.library.events import FilesChanged as FilesChanged
from codeloop.library.events import Notice as Notice
from codeloop.library.events import RetryWaiting as RetryWaiting
from codeloop.library.events import SessionEvent as SessionEvent
from codeloop.library.events import StepEnded as StepEnded
from codeloop.library.events import TextAdded as TextAdded
from codeloop.library.events import ThinkingAdded as ThinkingAdded
from codeloop.library.events import ToolEnded as ToolEnded
from codeloop.library.events import ToolReported as ToolReported
from codeloop.library.events import ToolStarted as ToolStarted
from codeloop.library.events import ToolUse as ToolUse
from codeloop.library.events import TurnDone as TurnDone
from codeloop.library.opening import connect_to as connect
from codeloop.library.opening import open_directory as open
from codeloop.library.options import Action as Action
from codeloop.library.options import Allow as Allow
from codeloop.library.options import Choice as Choice
from codeloop.library.options import ConnectOptions as ConnectOptions
from codeloop.library.options import Deny as Deny
from codeloop.library.options import ModelQuestion as ModelQuestion
from codeloop.library.options import OpenOptions as OpenOptions
from codeloop.library.options import PermissionQuestion as PermissionQuestion
from codeloop.library.options import SessionOptions as SessionOptions
from codeloop.library.options import TurnLimits as TurnLimits
from codeloop.library.project import AgentProject as AgentProject
from codeloop.library.session import AgentSession as AgentSession
from codeloop.library.session import SaidMessage as SaidMessage
from codeloop.schema.errors import CodeloopError as CodeloopError
from codeloop.schema.errors import SessionNotFound as SessionNotFound
from codeloop.schema.message import Tokens as Tokens

__version__: str
__all__ = [
    "Action",
    "AgentProject",
    "AgentSession",
    "Allow",
    "Answer",
    "Budget",
    "Choice",
    "CodeloopError",
    "ConnectOptions",
    "Context",
    "Deny",
    "FilesChanged",
    "LimitReached",
    "ModelQuestion",
    "Notice",
    "OpenOptions",
    "PermissionQuestion",
    "ProjectClosed",
    "RetryWaiting",
    "SaidMessage",
    "SessionEvent",
    "SessionNotFound",
    "SessionOptions",
    "StepEnded",
    "TextAdded",
    "ThinkingAdded",
    "Tokens",
    "ToolEnded",
    "ToolRefused",
    "ToolReported",
    "ToolStarted",
    "ToolUse",
    "TurnDone",
    "TurnFailed",
    "TurnLimits",
    "WrongResult",
    "__version__",
    "connect",
    "open",
    "sync",
]
