"""
Writes `licences.md` beside this file: the licence of each package in `modern.lock`, as the installed package states it.
`make licences` runs it.
"""

import re
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Optional, cast

HERE = Path(__file__).parent
LOCK = HERE / "modern.lock"
TABLE = HERE / "licences.md"
HEADER = """\
# Licences

Of what `make env` installs (`modern.lock`), as each package states it. Written by `make licences`.

| package | version | licence |
|---|---|---|
"""


def licence_of(package: Message) -> str:
    """The expression, else the classifiers, else the first line of what may be the whole text."""
    if package["License-Expression"]:
        return package["License-Expression"]
    classifiers = [text for text in package.get_all("Classifier", []) if text.startswith("License ::")]
    short = [text.split(" :: ")[-1] for text in classifiers if text != "License :: OSI Approved"]
    text = " or ".join(short) or (package["License"] or "").strip()
    return text.splitlines()[0].strip().replace("|", "/") if text else "not stated"


def installed(name: str) -> Optional[Message]:
    """The metadata of a package."""
    try:
        return cast(Message, metadata(name))
    except PackageNotFoundError:
        return None


def main() -> None:
    locked = re.findall(r"^(\S+)==(\S+) ", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    rows = []
    for name, version in locked:
        package = installed(name)
        if package is None or package["Version"] != version:
            raise SystemExit(f"{name} {version} must be installed, but is not; run: make env")
        rows.append(f"| {name} | {version} | {licence_of(package)} |\n")
    TABLE.write_text(HEADER + "".join(rows), encoding="utf-8")
    print(f"{len(rows)} licences are in {TABLE}")


if __name__ == "__main__":
    main()
