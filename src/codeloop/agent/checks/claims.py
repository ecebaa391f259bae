"""Finds in an answer what it claims: that checks pass, that something was changed or installed;
and what it asks. Pure.

Answers come in any language, so that the words of ten are known. In doubt there is no claim.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codeloop.agent.checks.check_runs import CheckRun

UNCHANGED_CLAIM_PROBLEM = (
    "your answer says that something was changed, and no file was changed in this turn"
)

_SENTENCE_END = r"(?<=[.!?;])\s+|(?<=[\u3002\uff01\uff1f])|\n"
# English, German, Spanish, French, Portuguese, Italian, Dutch, Polish, Russian, Chinese, Japanese.
_CHECK_WORDS = (
    r"(?i)\b(?:tests?|checks?|suite|build|lint(?:er|ing)?|types?|specs?|pytest|jest|vitest|mypy|pyright|ruff"
    r"|eslint|tsc"
    r"|clippy|ctest|make (?:test|check)|(?:npm|cargo|go) test"
    r"|pr\u00fcfungen|testl\u00e4ufe?|pruebas?|comprobaciones|compilaci\u00f3n|v\u00e9rifications?|testes"
    r"|verifica\u00e7\u00f5es"
    r"|controlli|verifiche|testen|controles|testy|sprawdzenia"
    r"|\u0442\u0435\u0441\u0442\u044b|\u043f\u0440\u043e\u0432\u0435\u0440\u043a\u0438"
    r"|\u043b\u0438\u043d\u0442\u0435\u0440|\u0441\u0431\u043e\u0440\u043a\u0430)\b"
    r"|\u6d4b\u8bd5|\u68c0\u67e5|\u6784\u5efa|\u7f16\u8bd1|\u30c6\u30b9\u30c8|\u30c1\u30a7\u30c3\u30af"
    r"|\u30d3\u30eb\u30c9|\u30ea\u30f3\u30c8|\ud14c\uc2a4\ud2b8|\btest(?:ler|erna)\b"
)
# Not what is handed on: "passes the token", "tests that pass through".
_SUCCESS_WORDS = (
    r"(?i)\b(?:pass(?:es|ed|ing)?(?! (?:the|a|an|its?|them|on|through|as|to|by|in|tests?|arguments?)\b| [`'\"-])"
    r"|succeed(?:s|ed)?|success(?:ful(?:ly)?)?|green|(?:clean|fine)(?!-| \w+ (?:is|are|has)\b)"
    r"|bestehen|bestanden|gr\u00fcn|erfolgreich|sauber|fehlerfrei"
    r"|pasan?|pasaron|pasado|verdes?|limpio|correctamente|\u00e9xito|passe(?:nt)?|pass\u00e9|r\u00e9ussi(?:ssent)?"
    r"|verts?|propre|succ\u00e8s"
    r"|passam?|passaram|limpo|sucesso|passano|passati|superati|superano|verdi|puliti?|successo"
    r"|slagen|geslaagd|groen|schoon|przechodz\u0105|przesz\u0142y|zielone|czyst[yae]"
    r"|\u043f\u0440\u043e\u0445\u043e\u0434\u044f\u0442|\u043f\u0440\u043e\u0448\u043b\u0438"
    r"|\u0437\u0435\u043b[\u0435\u0451]\u043d\w*|\u0443\u0441\u043f\u0435\u0448\u043d\w*"
    r"|\u0447\u0438\u0441\u0442\w*)\b"
    r"|\blaufen (?:alle )?durch\b|\u901a\u8fc7|\u6210\u529f|\u901a\u3063|\u901a\u308a|\u5408\u683c|\u30d1\u30b9"
    r"|\u30b0\u30ea\u30fc\u30f3|\ud1b5\uacfc|\bge\u00e7ti\b|\bg\u00e5r igenom\b"
)
# "without errors" says no more than "clean".
_CLEAN = (
    r"(?i)\b(?:without|with no|no|zero|0|sin|sem|senza|sans|ohne|zonder|bez)"
    r" (?:err\w+|fail\w+|fehler|fouten|falh\w+|fall\w+|warnings?|issues?|problems?)\b"
)
# Everything, without a word for what it is.
_ALL_GREEN = (
    r"(?i)\b(?:all|everything)(?: is| are)?(?: now)? (?:green|pass(?:es|ed|ing)?)(?=\W*$|[.:!,])"
    r"|^\W*[1-9]\d* (?:tests? )?passed\b"
)
# Words with which a sentence claims nothing: it denies, demands, or speaks of another time.
_NO_CLAIM = (
    r"(?i)(?<![\w-])(?:not|no|never|none|nothing|cannot|should|would|will|must|might|may|could|can|if|when|once"
    r"|until"
    r"|unless|before|after|please|make(?= (?:the|all|sure|it|every)\b)|goal|to get"
    r"|whether|ensure|sure|nicht|nichts|kein\w*|sollten?|wenn|falls|bevor|werden|nunca|nada|nulla|niets|si"
    r"|cuando|deber\w+"
    r"|pas|quand|lorsque|avant|n\u00e3o|quando|devem|non|devono|niet|geen|als|moeten|nie|je\u015bli|powinny"
    r"|\u043d\u0435|\u0435\u0441\u043b\u0438|\u043a\u043e\u0433\u0434\u0430"
    r"|\u0434\u043e\u043b\u0436\u043d\u044b)(?![\w-])"
    r"|n['\u2019]t\b|\bso that\b|^\W*(?:re-?)?(?:run|use|try|execute|call)\b"
    r"|[?\uff1f]\W*$|\u6ca1|\u672a|\u4e0d|\u5982\u679c|\u5e94\u8be5|\u306a\u3044|\u307e\u305b\u3093"
    r"|\u3079\u304d"
)
_NO_SUCCESS = r"(?i)\b(?:fail\w*|broken|errors?)\b"
# Matches "I changed", "Ich habe ... geändert" and the like.
_CHANGED = (
    r"(?i)\bI(?:['\u2019]ve| have)?(?: now| also| just)? (?:changed|added|fixed|updated|implemented|created|removed"
    r"|corrected|extended|deleted|moved|patched|written|introduced|made the (?:\w+ )?changes?|rewrote|edited"
    r"|modified|renamed|replaced|refactored|wrote)\b"
    r"|\bich habe\b.*\b(?:ge\u00e4ndert|hinzugef\u00fcgt|behoben|angepasst|erstellt|implementiert|entfernt"
    r"|umbenannt|erg\u00e4nzt|korrigiert)\b"
    r"|\b(?:he (?:cambiado|arreglado|actualizado|renombrado|implementado|a\u00f1adido|agregado|corregido|modificado"
    r"|creado|eliminado)|cambi\u00e9"
    r"|a\u00f1ad\u00ed|agregu\u00e9|correg\u00ed)\b"
    r"|\bj['\u2019]ai (?:modifi\u00e9|ajout\u00e9|corrig\u00e9|cr\u00e9\u00e9|mis \u00e0 jour|supprim\u00e9"
    r"|renomm\u00e9)\b"
    r"|\b(?:alterei|atualizei|renomeei|implementei|adicionei|corrigi|modifiquei|criei|removi)\b"
    r"|\bho (?:modificato|aggiornato|rinominato|aggiunto|corretto|creato|rimosso)\b"
    r"|\bik heb\b.*\b(?:gewijzigd|opgelost|bijgewerkt|hernoemd|toegevoegd|aangepast|hersteld|gemaakt|verwijderd)\b"
    r"|\b(?:zmieni\u0142[ae]m|zaktualizowa\u0142[ae]m|doda\u0142[ae]m|poprawi\u0142[ae]m|naprawi\u0142[ae]m"
    r"|usun\u0105\u0142em)\b"
    r"|\b(?:\u0438\u0437\u043c\u0435\u043d\u0438\u043b|\u0434\u043e\u0431\u0430\u0432\u0438\u043b"
    r"|\u0438\u0441\u043f\u0440\u0430\u0432\u0438\u043b|\u043e\u0431\u043d\u043e\u0432\u0438\u043b"
    r"|\u0443\u0434\u0430\u043b\u0438\u043b)\u0430?\b"
    r"|(?:\uc218\uc815|\ucd94\uac00|\ubcc0\uacbd|\uc5c5\ub370\uc774\ud2b8|\uc0ad\uc81c)\ud588\uc2b5\ub2c8\ub2e4"
    r"|\u6211(?:\u4fee\u6539|\u6dfb\u52a0|\u4fee\u590d|\u66f4\u65b0|\u5220\u9664)\u4e86"
    r"|\u5df2\u7ecf?(?:\u4fee\u6539|\u6dfb\u52a0|\u4fee\u590d|\u66f4\u65b0|\u5220\u9664)"
    r"|(?:\u5909\u66f4|\u8ffd\u52a0|\u4fee\u6b63|\u66f4\u65b0|\u524a\u9664)\u3057\u307e\u3057\u305f"
)
_CHANGED_FIRST = (
    r"^(?:Added|Fixed|Renamed|Removed|Refactored|Created|Updated|Implemented|Replaced|Rewrote|Changed)\b"
    r".*(?:`|\w\.\w)"
)
_INSTALLED = (
    r"(?i)\bI(?:['\u2019]ve| have)?(?: now| also| just)? installed\b|\bich habe\b.*\binstalliert\b"
    r"|\b(?:he instalado|instal\u00e9|j['\u2019]ai install\u00e9|instalei|ho installato|zainstalowa\u0142[ae]m)\b"
    r"|\bik heb\b.*\bge\u00efnstalleerd\b|\b\u0443\u0441\u0442\u0430\u043d\u043e\u0432\u0438\u043b\u0430?\b"
    r"|\b(?:is now|are now|was|were) installed(?: successfully|\W*$)|^Installed `|\bist jetzt installiert\b"
    r"|\uc124\uce58\ud588\uc2b5\ub2c8\ub2e4|\u6211?(?:\u5df2\u7ecf?\u5b89\u88c5|\u5b89\u88c5\u4e86)"
    r"|\u30a4\u30f3\u30b9\u30c8\u30fc\u30eb\u3057\u307e\u3057\u305f"
)
# What an answer claims of the repository, by the word that a command has which does it.
_EXCHANGES = {
    "commit": (
        r"(?i)\bI(?:['\u2019]ve| have)?(?: now| also| just| then)? (?:committed|created a commit|made a commit)\b"
        r"|\bI\b[^.]*(?:,| and)(?: then| also)? (?:committed|made a commit)\b"
        r"|^Committed (?:as|the|to|all)\b|\bich habe\b.*\b(?:committet|commitet|eingecheckt)\b"
        r"|\bhe (?:hecho (?:un )?commit|commiteado)\b|\bj['\u2019]ai (?:commit\u00e9|fait un commit)\b"
        r"|\bfiz (?:o|um) commit\b|\bho (?:fatto (?:il|un) commit|committato)\b|\bik heb\b.*\bgecommit\b"
        r"|\bzacommitowa\u0142[ae]m\b|\b\u0437\u0430\u043a\u043e\u043c\u043c\u0438\u0442\u0438\u043b\u0430?\b"
        r"|\u5df2\u7ecf?\u63d0\u4ea4|\u30b3\u30df\u30c3\u30c8\u3057\u307e\u3057\u305f"
        r"|\ucee4\ubc0b\ud588\uc2b5\ub2c8\ub2e4"
    ),
    "push": (
        r"(?i)\bI(?:['\u2019]ve| have)?(?: now| also| just| then)? (?:(?:committed|rebased) and )?pushed\b"
        r"|\bI\b[^.]*(?:,| and)(?: then| also)? pushed\b"
        r"|^Pushed (?:to|the|it)\b|\bich habe\b.*\bgepusht\b|\bhe (?:hecho push|subido los cambios)\b"
        r"|\bj['\u2019]ai pouss\u00e9\b|\bfiz (?:o )?push\b|\bho (?:fatto (?:il )?push|pushato)\b"
        r"|\bik heb\b.*\bgepusht\b"
        r"|\bwypchn\u0105\u0142em\b|\b\u0437\u0430\u043f\u0443\u0448\u0438\u043b\u0430?\b"
        r"|\u5df2\u7ecf?\u63a8\u9001|\u30d7\u30c3\u30b7\u30e5\u3057\u307e\u3057\u305f"
        r"|\ud478\uc2dc\ud588\uc2b5\ub2c8\ub2e4"
    ),
    "pr": (
        r"(?i)\bI(?:['\u2019]ve| have)?(?: now| also| just| then)? (?:opened|created|submitted|filed|raised)"
        r" (?:a |the )?(?:draft )?(?:PR|MR|pull request|merge request)\b"
        r"|\bI\b[^.]*(?:,| and)(?: then| also)? opened (?:a |the )?(?:PR|pull request)\b"
        r"|^(?:Opened|Created|Submitted) (?:a |the )?(?:draft )?(?:PR|MR|pull request|merge request)\b"
        r"|\bich habe\b.*\b(?:PR|Pull[ -]Request|Merge[ -]Request)\b.*\b(?:erstellt|ge\u00f6ffnet)\b"
        r"|\bhe (?:abierto|creado) (?:un |el )?(?:PR|pull request)\b|\bj['\u2019]ai (?:ouvert"
        r"|cr\u00e9\u00e9) (?:une? |la )?(?:PR|pull request)\b"
    ),
}
# An answer of more characters, with a question at its end, says something else first.
_MAX_QUESTION_CHARS = 700
# Matches a word for who asks or is asked, and one for what is left open: `which`, `or`.
_PERSON = (
    r"(?i)\b(?:you|your|i|me|we|du|sie|ich|mir|dir|wir|usted|t\u00fa|me|quieres|prefieres|podr\u00edas|puedes"
    r"|preferisci|puoi|wolisz|mo\u017cesz|should|shall|vous|je|moi|tu"
    r"|voc\u00ea|eu|lei|io|mi|vuoi"
    r"|jij|je|u|ik|pan|ty|mam|mnie|\u0432\u044b|\u0442\u044b|\u043c\u043d\u0435|\u044f|\u0432\u0430\u043c"
    r"|\u043c\u043e\u0436\u0435\u0442\u0435)\b|\uae4c\uc694"
    r"|\u60a8|\u4f60|\u6211|\u3067\u3057\u3087\u3046|\u3057\u307e\u3059\u304b|\u3067\u3059\u304b"
)
_OPEN_POINT = (
    r"(?i)\b(?:or|which|what|where|how|who|(?:could|can) you|podr\u00edas|puoi|mo\u017cesz|please|oder|welche\w*|was"
    r"|wo|wie|soll(?:en)?"
    r"|cu\u00e1l|qu\u00e9|d\u00f3nde"
    r"|debo|o|quelle?s?|que|o\u00f9|dois|ou|qual|onde|devo|quale|dove|cosa|oppure|welke?|wat|waar|of|moet"
    r"|kt\u00f3r\w+|jak|gdzie|czy"
    r"|\u043a\u0430\u043a\w*|\u0433\u0434\u0435|\u0447\u0442\u043e|\u0438\u043b\u0438)\b|\u54ea|\u4ec0\u4e48"
    r"|\u8fd8\u662f|\u3069\u306e|\u3069\u3061\u3089|\uc5b4\ub5a4|\uc5b4\ub290|\u043c\u043e\u0436\u0435\u0442\u0435"
    r"|\u4f55|\u305d\u308c\u3068\u3082"
)
# A demand without a question mark: "Please provide the log.", "Tell me which one."
_DEMAND = (
    r"(?i)^\W*(?:please (?:provide|confirm|specify|clarify|tell|share|send|paste|choose)"
    r"|(?:tell me|let me know) (?:the|which|what|where|whether|how (?:to|you|I)\b)"
    r"|(?:bitte (?:sag|nenn|gib|schick|best\u00e4tig)|por favor,? (?:ind\u00edca|dime|confirma|env\u00eda)"
    r"|(?:merci de|veuillez) (?:pr\u00e9ciser|confirmer|indiquer|envoyer))\w*"
    r"|\u8bf7(?:\u544a\u8bc9|\u786e\u8ba4|\u63d0\u4f9b)|.*\u6559\u3048\u3066\u304f\u3060\u3055\u3044"
    r"|(?:before .*, )?I(?: will)? need (?:to know|you to|more (?:information|details|context))"
    r"|waiting for your\b)"
)
_QUESTION_END = r"[?\uff1f][\s*_)]*$"
# Words of failures, for sentences that tell about a check without claiming that it passes.
_FAILURE_WORDS = (
    r"(?i)\b(?:fail\w*|errors?|(?:exits?|ends?|returns?) non-?zero|unhappy"
    r"|can(?:not|n['\u2019]t) pass|br(?:eak|oke)\w*|exits? (?:with|code)|not clean|red|warnings?|issues?|problems?"
    r"|complain\w*|reports?|(?:still )?lists \d+"
    r"|pre-?existing|unrelated|before my|the same|timed? out|too long|did not (?:end|finish)"
    r"|fehler\w*|schl\u00e4gt|schlagen|fehlgeschlagen|bricht|errores|error|falla\w*|fall\u00f3|\u00e9chou\w*"
    r"|erreurs?|erros?|falh\w*"
    r"|errori|fallis\w*|fallit\w*|fouten?|faalt|falen|mislukt|b\u0142\u0119d\w*|nie przechodz\w*"
    r"|\u043e\u0448\u0438\u0431\w*|\u043f\u0430\u0434\u0430\w*|\u0443\u043f\u0430\u043b\w*)\b|\u5931\u8d25"
    r"|\b(?:feil|fejl|misslyck|ep\u00e4onnist|elbuk|selh[\u00e1a]|chyb|ba\u015far\u0131s|rompe)\w*"
    r"|\bnoch rot\b|\ben \u00e9chec\b|\b(?:ne pass\w+ (?:pas|plus)|n\u00e3o passa\w*|non passa\w*|slagen niet)\b"
    r"|(?:\u672a|\u6ca1\u6709?|\u4e0d)(?:\u80fd)?\u901a\u8fc7|\u901a(?:\u3063\u3066(?:\u3044)?"
    r"|\u308a)\u307e\u305b\u3093|\ud1b5\uacfc\ud558\uc9c0"
    r"|\u043d\u0435 \u043f\u0440\u043e\u0445\u043e\u0434"
    r"|\uc2e4\ud328|\u0641\u0634\u0644|\u0935\u093f\u092b\u0932|th\u1ea5t b\u1ea1i"
    r"|\u9519\u8bef|\u62a5\u9519|\u5931\u6557|\u30a8\u30e9\u30fc|\u843d\u3061"
)
_WORDS_BY_KIND = {
    "test": r"(?i)\btest|spec|suite|prueba|testes|\u0442\u0435\u0441\u0442|\u6d4b\u8bd5|\u30c6\u30b9\u30c8"
    r"|\ud14c\uc2a4\ud2b8|\u0627\u062e\u062a\u0628\u0627\u0631|\u091f\u0947\u0938\u094d\u091f|ki\u1ec3m th\u1eed",
    "lint": r"(?i)lint|style|\u043b\u0438\u043d\u0442|\u30ea\u30f3\u30c8",
    "format": r"(?i)format|style|lint|\u0444\u043e\u0440\u043c\u0430\u0442|\u683c\u5f0f",
    "types": r"(?i)\btyp|tipos|\u0442\u0438\u043f|\u7c7b\u578b|\u578b",
    "build": r"(?i)build|compil|\u0441\u0431\u043e\u0440\u043a|\u6784\u5efa|\u7f16\u8bd1|\u30d3\u30eb\u30c9",
    "all": r"(?i)check|test|prueba|pr\u00fcf|v\u00e9rif|\u043f\u0440\u043e\u0432\u0435\u0440",
}
# Matches a failure that is over or denied: "fixed the failing test", "no errors".
_DENIED_FAILURE = (
    r"(?i)\b(?:no|not|never|without|zero|0|any)\b(?: \w+){0,3} (?:fail|error|warning|issue|problem)\w*"
    r"|\b(?:fix|solv|resolv|repair|correct)\w*|\bwas failing\b|\bwould\b|\bkeine\b|\bsin\b|\bsans\b|\bsem\b"
    r"|\bsenza\b|\bgeen\b"
    r"|\bbez\b|\b\u0431\u0435\u0437\b|\u6ca1\u6709|\u4fee\u590d|\u4fee\u6b63"
)
# A shorter error may stand in any answer.
_MIN_QUOTED_CHARS = 12
# Words of lines that name no check.
_LEADING_WORDS = frozenset(
    ("npx", "run", "python", "python3", "cd", "uv", "poetry", "bundle", "exec")
)
_COMMON_WORDS = r"(?i)tests?|check|build|lint|src|make|types?|node|cargo|bash|true|tail|run"


def claims_success(text: str) -> bool:
    """Return whether a sentence of an answer claims that tests, or other checks, pass."""
    sentences = (re.sub(_CLEAN, "clean", sentence) for sentence in _split(text))
    return any(
        (
            re.search(_ALL_GREEN, sentence)
            or (re.search(_CHECK_WORDS, sentence) and re.search(_SUCCESS_WORDS, sentence))
        )
        and not re.search(_NO_CLAIM, sentence)
        and not re.search(_NO_SUCCESS, sentence)
        for sentence in sentences
    )


def claims_change(text: str) -> bool:
    """Return whether a sentence of an answer claims that something was changed."""
    sentences = [*_split(text)]
    claims = (each for each in sentences if re.search(_CHANGED, each))
    # "Fixed the bug in a.py." begins an answer; further below it may tell of a commit.
    first = (each for each in sentences[:2] if re.search(_CHANGED_FIRST, each))
    return any(not re.search(_NO_CLAIM, each) for each in (*claims, *first))


def claims_installation(text: str) -> bool:
    """Return whether a sentence of an answer claims that something was installed."""
    return any(
        re.search(_INSTALLED, each) and not re.search(_NO_CLAIM, each) for each in _split(text)
    )


def list_claimed_exchanges(text: str) -> list[str]:
    """Return the claims of an answer about the repository: `commit`, `push`, `pr`."""
    sentences = [each for each in _split(text) if not re.search(_NO_CLAIM, each)]
    return [
        name
        for name, pattern in _EXCHANGES.items()
        if any(re.search(pattern, each) for each in sentences)
    ]


def asks_user(text: str) -> bool:
    """Return whether an answer is a question that the user has to answer
    before the work can go on.
    """
    text = text.strip()
    sentences = [*_split(text)]
    if len(text) > _MAX_QUESTION_CHARS or not sentences:
        return False
    question = sentences[-1]
    if not re.search(_QUESTION_END, text):
        return re.search(_DEMAND, question) is not None
    # What follows an answer may only be an offer.
    is_all = len(sentences) == 1
    return bool(re.search(_PERSON, question) and (is_all or re.search(_OPEN_POINT, question)))


def claims_that_passes(text: str, run: "CheckRun", kinds: Sequence[str]) -> bool:
    """Return whether an answer claims that one check passes: it names its command or its kind."""
    return any(
        claims_success(sentence)
        and (
            run.command.strip() in sentence
            or any(re.search(_WORDS_BY_KIND[kind], sentence) for kind in kinds)
        )
        for sentence in _split(text)
    )


def names_failure(text: str, run: "CheckRun", kinds: Sequence[str]) -> bool:
    """Return whether an answer tells about a check that failed, or did not end,
    and does not claim that it passes.

    It names its command, its program or its kind, or quotes its error.
    `kinds`: of the checks of its line.
    """
    names = [run.command.strip(), *_list_programs(run.command)]
    quotes = [run.error] if len(run.error) >= _MIN_QUOTED_CHARS else []
    for sentence in _split(text):
        if any(quote in sentence for quote in quotes):
            return True
        is_claim = re.search(_SUCCESS_WORDS, sentence) and not re.search(_FAILURE_WORDS, sentence)
        if is_claim:
            continue
        is_named = any(
            re.search(rf"(?i)(?<![\w/-]){re.escape(name)}(?![\w-])", sentence)
            for name in names
            if name
        )
        if is_named and (re.search(_FAILURE_WORDS, sentence) or re.search(r"\d", sentence)):
            return True
        if re.search(_FAILURE_WORDS, sentence) and any(
            re.search(_WORDS_BY_KIND[kind], sentence) for kind in kinds
        ):
            return not re.search(_DENIED_FAILURE, sentence)
    return False


def _split(text: str) -> Iterator[str]:
    return (each for each in re.split(_SENTENCE_END, text) if each.strip())


def _list_programs(command: str) -> list[str]:
    """Return the words of a line that may name its check in an answer: `make test`, `eslint`."""
    words = [word.rpartition("/")[2] for word in command.split() if re.fullmatch(r"[\w./-]+", word)]
    plain = [word for word in words if not word.startswith("-") and word not in _LEADING_WORDS]
    # One word that is also a common one (`test`) names nothing by itself.
    return [
        " ".join(plain[:2]),
        *(word for word in plain[:3] if len(word) > 2 and not re.fullmatch(_COMMON_WORDS, word)),
    ]
