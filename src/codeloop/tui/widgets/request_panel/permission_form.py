"""The form of a permission request: allow it once, for the session or always, reject it,
or say what to do instead.

The patterns that are allowed from now on, always or for the session, can be edited.
"""

from codeloop.client.questions.always_scopes import is_broad, list_scopes
from codeloop.client.questions.permission_text import describe_request
from codeloop.client.questions.permission_titles import describe_always
from codeloop.client.questions.quoting import MAX_FULL_ROWS
from codeloop.client.questions.requester import Requester
from codeloop.kit.text.terminal_text import one_line
from codeloop.kit.wildcard import is_within
from codeloop.schema.permission import AlwaysScope, PermissionRequest, Reply
from codeloop.schema.wire import replace
from codeloop.tui.widgets.request_panel.form import (
    CURSOR_STEPS_BY_KEY,
    FormAnswer,
    FormChoice,
    FormContent,
    FormEntry,
    FormTab,
    RepeatedChoice,
)

WIDER_NOTICE = "That is wider than what was offered: it allows more than this request is about."
_WIDER_KEY = "w"
"""The key that widens "always": from the file to its folder, to everything,
and back to the file.
"""
BROAD_NOTICE = "That is broad: {}. Press {} again to allow it {}{}."
CONFIRM_REJECT_NOTICE = "Press esc or enter again to reject it and stop the {}."
SESSION_NOTICE = "Press s again to allow it for this session."
_SESSION_KEY = "s"
"""Must be pressed twice, as "stop" and "skip that" begin with it: another letter
after it makes it a word.
"""
_CHOICES_BY_KEY = {"y": "once", "a": "always", "n": "reject", "r": "reason"}


class PermissionForm:
    """The choices for one request, and the answer once there is one."""

    is_multiple = False

    def __init__(self, request: PermissionRequest, requester: Requester) -> None:
        self.cursor = 0
        self.notice = ""
        self.answer: FormAnswer | None = None
        self.entry: FormEntry | None = None
        self.tab = 0
        self.tabs: tuple[FormTab, ...] = ()
        self._request = request
        self._offered_patterns = tuple(request.always)
        self._scopes = list_scopes(request)
        """What "always" can allow, from the narrowest to what was offered."""
        self._take_scope(0)
        self._requester = requester
        self._repeated_choice = RepeatedChoice()
        self._typed_patterns: list[str] | None = None
        """The patterns edited so far, one after the other; None: none is being edited."""
        self._edited_patterns: tuple[str, ...] = ()
        """The patterns that are edited, as they were before."""
        self._begun_word = ""
        """The first letter of what may become a word: the key for the session, pressed once."""
        self._reason = ""
        """The unfinished reason that the user left to go back to the choices."""

    def get_content(self, width: int) -> FormContent:
        """Return the requested action, with the whole command or diff."""
        request = self._request
        words = describe_request(request, self._requester, width, MAX_FULL_ROWS)
        diff = request.metadata.get("diff")
        if not isinstance(diff, str) or not diff:
            return FormContent(words.title, list(words.rows))
        # The panel chooses: where the diff is drawn, the rows need not repeat it.
        without_diff = replace(
            request,
            metadata={key: value for key, value in request.metadata.items() if key != "diff"},
        )
        rows_without_diff = describe_request(
            without_diff, self._requester, width, MAX_FULL_ROWS
        ).rows
        return FormContent(words.title, list(words.rows), diff, tuple(rows_without_diff))

    def list_choices(self) -> list[FormChoice]:
        """Return the choices."""
        stopped = "subagent" if self._requester.subagent else "turn"
        always = describe_always(self._request)
        choices_by_name = {
            "once": FormChoice("y", "Allow once"),
            "session": FormChoice(
                "s", f"Allow for this session: {describe_always(self._request, for_session=True)}"
            ),
            "always": FormChoice(
                "a", f"Allow always: {always}", ", ".join(self._list_always_keys())
            ),
            "reject": FormChoice("n", f"Reject, and stop the {stopped}"),
            "reason": FormChoice("r", "Reject, and say what to do instead"),
        }
        return [choices_by_name[name] for name in self._choices]

    def _list_always_keys(self) -> list[str]:
        """Return the hints on further keys for "always"."""
        can_widen = len(self._scopes) > 1
        return [
            *([f"{_WIDER_KEY} widens it"] if can_widen else []),
            *(["e edits it"] if self._can_edit else []),
        ]

    def _take_scope(self, index: int) -> None:
        """Let "always" allow what the scope of an index allows."""
        self._scope_index = index
        if self._scopes:
            self._request = replace(self._request, always=list(self._scopes[index]))

    @property
    def _choices(self) -> list[str]:
        """The names of the choices, in the order in which they are shown."""
        return [
            "once",
            *(["session", "always"] if self._offered_patterns else []),
            "reject",
            "reason",
        ]

    @property
    def _can_edit(self) -> bool:
        # A pattern with line ends or controls can't be shown in a line of input as it is.
        return bool(self._offered_patterns) and all(
            one_line(each, len(each)) == each for each in self._offered_patterns
        )

    def press(self, key: str) -> bool:
        """Handle a key; return whether it has a meaning here.
        Escape only rejects when it is pressed twice.
        """
        begun_word, self._begun_word = self._begun_word, ""
        self._begin_choice()
        choices = self._choices
        if begun_word and key.isalpha() and len(key) == 1 and key != _SESSION_KEY:
            self._begun_word = begun_word
            return False
        if key in CURSOR_STEPS_BY_KEY:
            self.cursor = (self.cursor + CURSOR_STEPS_BY_KEY[key]) % len(choices)
        elif key == "enter":
            self._take_choice(self.cursor)
        elif key.isdecimal() and 0 < int(key) <= len(choices):
            self._take_choice(int(key) - 1)
        elif key in _CHOICES_BY_KEY and _CHOICES_BY_KEY[key] in choices:
            self._take_choice(choices.index(_CHOICES_BY_KEY[key]))
        elif key == _SESSION_KEY and "session" in choices:
            self._press_session_key()
        elif key == _WIDER_KEY and len(self._scopes) > 1:
            self._point_at_patterns()
            self._take_scope((self._scope_index + 1) % len(self._scopes))
        elif key == "e" and self._can_edit:
            self._point_at_patterns()
            # After one was left out, the rest can't be matched with what was offered:
            # begin again with that.
            scope, patterns = self._scopes[self._scope_index], tuple(self._request.always)
            self._edited_patterns = patterns if len(patterns) == len(scope) else scope
            self._typed_patterns = []
            self._ask_pattern()
        elif key == "escape" and self._repeated_choice.record("reject"):
            self._answer_with("reject")
        elif key == "escape":
            self.cursor = choices.index("reject")
            self.notice = CONFIRM_REJECT_NOTICE.format(
                "subagent" if self._requester.subagent else "turn"
            )
        else:
            return False
        return True

    def _press_session_key(self) -> None:
        self.cursor = self._choices.index("session")
        if self._repeated_choice.record("session"):
            self._take_choice(self.cursor)
            return
        self._begun_word = _SESSION_KEY
        self.notice = self._make_broad_notice("session") if self._is_broad else SESSION_NOTICE

    def choose(self, index: int) -> None:
        """Take a choice; a broad "always" must be chosen twice."""
        self._begin_choice()
        self._take_choice(index)

    def _point_at_patterns(self) -> None:
        """Move the cursor to "always", unless it is at another choice that allows the patterns."""
        if self._choices[self.cursor] != "session":
            self.cursor = self._choices.index("always")

    def _begin_choice(self) -> None:
        self._repeated_choice.begin()
        self.notice = ""

    def _take_choice(self, index: int) -> None:
        self.cursor = index
        match self._choices[index]:
            case "once":
                self._answer_with("once")
            case "session" | "always" as choice:
                if self._is_broad and not self._repeated_choice.record(choice):
                    self.notice = self._make_broad_notice(choice)
                else:
                    self._answer_with("always", "session" if choice == "session" else "directory")
            case "reject":
                self._answer_with("reject")
            case _:
                self._ask_reason(self._reason)

    def _make_broad_notice(self, choice: str) -> str:
        is_for_session = choice == "session"
        effect = describe_always(self._request, for_session=is_for_session)
        scope = "for this session" if is_for_session else "from now on"
        return BROAD_NOTICE.format(
            effect, choice[0], scope, ", or e to edit it" if self._can_edit else ""
        )

    def begin_text(self, text: str) -> bool:
        """Open the entry of the reason with a typed text that is not a key of the form.
        Return True: there is one.
        """
        self._begin_choice()
        self.cursor = self._choices.index("reason")
        self._ask_reason(self._reason + self._begun_word + text)
        self._begun_word = ""
        return True

    def _ask_reason(self, text: str) -> None:
        self.entry = FormEntry(
            label="What to do instead:", text=text, placeholder="the model reads this, and goes on"
        )

    def accept_text(self, text: str) -> None:
        """Accept the typed reason, or an edited pattern."""
        if self._typed_patterns is None:
            self.entry = None
            if text.strip():
                self.answer = FormAnswer("reject", text.strip())
            return
        self._typed_patterns.append(text.strip())
        if len(self._typed_patterns) < len(self._edited_patterns):
            self._ask_pattern()
        else:
            self._take_patterns(tuple(pattern for pattern in self._typed_patterns if pattern))

    def close_entry(self, text: str = "") -> None:
        """Go back to the choices; an unfinished reason is kept for the next time."""
        if self._typed_patterns is None:
            self._reason = text
        self.entry = self._typed_patterns = None

    def _ask_pattern(self) -> None:
        patterns, count = self._edited_patterns, len(self._typed_patterns or [])
        position = (
            f" ({count + 1} of {len(patterns)}; empty leaves it out)" if len(patterns) > 1 else ""
        )
        self.entry = FormEntry(
            label=f"Allow always{position}:",
            text=patterns[count],
            placeholder="* stands for any text, ? for one character",
            enter_verb="takes",
        )

    def _take_patterns(self, patterns: tuple[str, ...]) -> None:
        """Show the edited patterns as the choice "always", which the user must still choose."""
        self.close_entry()
        if patterns:
            self._request = replace(self._request, always=list(patterns))
        self.notice = WIDER_NOTICE if self._is_wider else ""

    @property
    def _is_broad(self) -> bool:
        """Whether "always" allows all that was offered, and that is broad."""
        always = tuple(self._request.always)
        return always == self._offered_patterns and is_broad(self._request.permission, always)

    @property
    def _is_wider(self) -> bool:
        """Whether the edited patterns allow more than the offered ones."""
        return not all(
            is_within(pattern, self._offered_patterns) for pattern in self._request.always
        )

    def _answer_with(self, reply: Reply, scope: AlwaysScope = "directory") -> None:
        patterns = tuple(self._request.always)
        is_edited = reply == "always" and patterns != self._offered_patterns
        always = patterns if is_edited else None
        self.answer = FormAnswer(
            reply, always=always, wider=is_edited and self._is_wider, scope=scope
        )
