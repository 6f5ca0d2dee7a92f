"""
Writes `modern.lock` beside this file: the files that `make env` installs, each with its SHA-256. `make lock` runs it.

The hashes are those of the package index, for the Python and the machine that run this: Python 3.11 on Linux, x86-64.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List

ROOT = Path(__file__).parents[1]
LOCK = Path(__file__).with_name("modern.lock")
# As in the Makefile: what `setup.py` asks for, then the two archived packages without what their metadata asks for.
RESOLUTIONS = (
    ["-c", str(ROOT / "constraints-modern.txt"), "-e", f"{ROOT}[dev]"],
    ["--no-deps", "allennlp==2.10.1", "allennlp-models==2.10.1"],
)
HEADER = """\
# What `make env` installs, file by file, for Python 3.11 on Linux, x86-64. Made by supply/lock.py.
#   pip install --no-deps --require-hashes -r supply/modern.lock
#   pip install --no-deps -e .
# --no-deps: the list is complete, and the metadata of AllenNLP forbids what its code runs on.
"""


def resolved(arguments: List[str]) -> List[Dict[str, Any]]:
    """What pip would install into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = ["install", "--quiet", "--dry-run", "--ignore-installed", "--report", str(report), *arguments]
        subprocess.run([sys.executable, "-m", "pip", *command], check=True, cwd=ROOT)
        return json.loads(report.read_text(encoding="utf-8"))["install"]


def locked(item: Dict[str, Any]) -> str:
    """One entry of the file."""
    name, version = item["metadata"]["name"], item["metadata"]["version"]
    return f"{name}=={version} \\\n    --hash=sha256:{item['download_info']['archive_info']['hashes']['sha256']}\n"


def main() -> None:
    items = [item for arguments in RESOLUTIONS for item in resolved(arguments) if not item["is_direct"]]
    LOCK.write_text(HEADER + "".join(sorted(map(locked, items), key=str.lower)), encoding="utf-8")
    print(f"{len(items)} files are in {LOCK}")


if __name__ == "__main__":
    main()
