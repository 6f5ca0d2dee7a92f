"""What is installed is known file by file."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "supply/modern.lock"
ENTRY = re.compile(r"^(\S+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}$", re.MULTILINE)
ARCHIVED = {"allennlp": "2.10.1", "allennlp-models": "2.10.1"}


def locked():
    return {canonicalize_name(name): version for name, version in ENTRY.findall(LOCK.read_text())}


def test_the_lock_holds_a_hash_for_each_file_and_nothing_else():
    lines = [line for line in LOCK.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == 2 * len(locked())
    assert "://" not in LOCK.read_text(), "where files come from is the business of who installs them"


def test_the_lock_is_the_constrained_set_with_the_libraries_of_torch():
    lines = [line for line in (ROOT / "constraints-modern.txt").read_text().splitlines() if not line.startswith("#")]
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    rest = dict(locked())
    assert {**pins, **ARCHIVED} == {name: rest.pop(name) for name in (*pins, *ARCHIVED)}
    assert all(re.match(r"nvidia-|cuda-|triton$", name) for name in rest)


def test_each_package_of_the_lock_has_its_licence():
    rows = re.findall(r"^\| (\S+) \| (\S+) \| (.+) \|$", (ROOT / "supply/licences.md").read_text(), re.MULTILINE)
    licences = {canonicalize_name(name): version for name, version, _ in rows if name not in ("package", "---")}
    assert licences == locked()
    # A package of metadata alone.
    assert [name for name, _, licence in rows if licence == "not stated"] == ["cuda-toolkit"]


@pytest.mark.slow
def test_pip_check_complains_of_nothing_but_the_metadata_of_allennlp():
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    others = [line for line in done.stdout.splitlines() if not re.match(r"allennlp(-models)? 2\.10\.1 ", line)]
    assert others == []
