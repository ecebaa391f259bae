"""Finds admissions in the text of an answer: that a check fails, that something is not done,
that tests changed. Pure.

Patterns, not a model: they run after every unattended turn.
An answer that admits a problem needs no reminder of it.
"""

import re

# Matches the end of a sentence.
_SENTENCE_END = r"(?<=[.!?;])\s+|\n"
_CHECK_NOUNS = (
    r"\b(?:tests?|checks?|suite|builds?|lint\w*|types?|cases?|specs?|test_\w+|pytest"
    r"|jest|tsc|it|they|[1-9]\d*)\b"
)
# Matches "2 tests still fail", "3 failed", "the build does not pass", "I could not fix it",
# "is not yet done".
_ADMISSION = (
    rf"(?i){_CHECK_NOUNS}[^.\n]{{0,60}}"
    r"\b(?:fails?|(?:is|are|still|remains?) (?:still )?(?:failing|red|broken|unfixed))\b"
    r"|\b[1-9]\d* (?:\w+ )?fail(?:ed|ures?|ing)?\b"
    rf"|{_CHECK_NOUNS}[^.\n]{{0,60}}\b(?:do|does|did)(?: not|n['\u2019]t)(?: yet)? (?:pass|work|succeed|run)\b"
    r"|\b(?:I|we)(?: \w+)? ?(?:could|can|did|was|were|have|am|do)(?: not|n['\u2019]t)(?: \w+){0,3}"
    r" (?:fix|solve|finish|complete|pass|verif|test|manage|able|rerun|re-run|done|run(?! into))\w*"
    r"|\b(?:I|we) cannot\b|\b(?:unable|failed) to (?:fix|solve|finish|complete|make|get|run|verify|test)\b"
    r"|\b(?:is|are|was) not (?:yet )?(?:done|finished|fixed|solved|complete|verified|tested)\b"
    r"|^\W*not (?:done|finished|fixed)\b"
)
# Matches a denial of a failure, or that it is over: "no test fails", "fixes the failing test",
# "passes now".
_DENIAL = (
    r"(?i)\b(?:no|not|never|none|nothing|without|zero|0)(?: \w+){0,2} (?:longer|fail\w*)"
    r"|\b(?:fixe[sd]|solve[sd]|used to|previously|earlier|before|would|should|if|when) (?:\w+ ){0,6}fail"
    r"|\b(?:was|were) (?:\w+ )?failing\b"
    r"|\bnow (?:it )?(?:pass|work)|\b(?:pass|work)\w* now\b"
)
# Matches "Not run: ...", "the other tests were not run", "I only reran the failed ones".
_UNRUN_CHECKS = (
    r"(?i)^\W*not (?:(?:re-?)?run|tested|verified)\b"
    r"|\b(?:tests|checks|suite|rest|others)\b[^.\n]{0,40}\b(?:was|were|have|has) not (?:yet |been ){0,2}(?:re-?)?run\b"
    r"|\bonly (?:ran|reran|re-ran)\b[^.\n]{0,40}\b(?:tests?|checks?|failed)\b"
)
# Matches "eslint did not end within two minutes", "the suite timed out", "it takes too long here",
# "still runs".
_UNENDED_CHECKS = (
    r"(?i)\b(?:did|does|do|has|have)(?: not|n['\u2019]t)(?: yet)? (?:end|finish|complete|return)"
    r"|\btim(?:ed|es?|ing)[ -]?outs?\b|\btakes? (?:too|very|so) long\b|\bstill (?:runs|running)\b|\b(?:hangs|hung)\b"
)
_CHANGE_VERBS = r"(?:remov|delet|skip|disabl|chang|edit|updat|adapt|adjust|weaken|renam|replac|dropp?|rewr[io]t)"
_TEST_NOUNS = r"\b(?:tests?|specs?|assert\w*|expectations?|test_\w+)\b"
_ARTICLES = (
    r"(?: (?:the|that|this|these|an?|its|some|one|two|of|in|old|failing|broken|existing"
    r"|outdated|obsolete|\w+ing))"
)
# Matches "removed the outdated test", "the spec is skipped", "tests were adapted".
_TEST_CHANGE = (
    rf"(?i)\b{_CHANGE_VERBS}\w*{_ARTICLES}{{0,4}} \W?{_TEST_NOUNS}"
    rf"|{_TEST_NOUNS}[^.\n]{{0,40}}\b(?:x-?fail\w*|skipp?ed)\b"
    rf"|{_TEST_NOUNS}(?:(?!pass)[^.\n]){{0,40}}\b(?:is|are|was|were|been|I) (?:now )?"
    rf"(?:{_CHANGE_VERBS}(?:e?d|ten|e))\b"
)


def admits_failure(text: str) -> bool:
    """Return whether an answer says that a check fails, or that something could not be done."""
    return any(
        re.search(_ADMISSION, sentence) and not re.search(_DENIAL, sentence)
        for sentence in re.split(_SENTENCE_END, text)
    )


def names_unrun_checks(text: str) -> bool:
    """Return whether an answer says that checks were not run, or only a part of them."""
    return any(re.search(_UNRUN_CHECKS, sentence) for sentence in re.split(_SENTENCE_END, text))


def names_unended_checks(text: str, command: str) -> bool:
    """Return whether an answer says that a check did not end, or names its command."""
    return command.strip() in text or re.search(_UNENDED_CHECKS, text) is not None


def names_test_changes(text: str) -> bool:
    """Return whether an answer says what was done to tests."""
    return any(re.search(_TEST_CHANGE, sentence) for sentence in re.split(_SENTENCE_END, text))
