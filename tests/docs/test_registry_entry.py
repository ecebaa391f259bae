"""The entry for the registry of agents that editors install from: as its schema wants it,
but for how it is started.
"""

import json
import re
from xml.etree import ElementTree as ET

from codeloop.kit.version import RELEASE
from tests.docs.pages import ROOT

FOLDER = ROOT / "docs" / "assets" / "acp"


def test_the_entry_is_of_this_version_and_starts_no_program_of_somebody_else() -> None:
    entry = json.loads((FOLDER / "agent.json").read_text())
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
    assert {"id", "name", "version", "description", "license_url"} <= entry.keys()
    assert entry["version"] == RELEASE
    assert "distribution" not in entry, (
        "before a release, the name on the package index is not ours"
    )
    assert entry["license_url"].startswith("https://")


def test_the_icon_is_small_and_takes_the_editors_colour() -> None:
    icon = ET.parse(FOLDER / "icon.svg").getroot()
    assert (icon.get("width"), icon.get("height"), icon.get("stroke")) == (
        "16",
        "16",
        "currentColor",
    )
