"""What the README says about installing is what `make` does, and the pinned sets fit."""

import ast
import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from elmo_tasks.common.version_pairs import check_versions

ROOT = Path(__file__).parents[1]
SETS = {"MODERN": "constraints-modern.txt", "CLASSIC": "constraints-classic.txt"}


def requirements_for_modern_pythons():
    """The list in `setup.py`."""
    (value,) = [
        node.value
        for node in ast.parse((ROOT / "setup.py").read_text()).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "MODERN"
    ]
    return [Requirement(text) for text in ast.literal_eval(value)]


def pins(name):
    """The versions that a set of constraints holds."""
    lines = [line for line in (ROOT / SETS[name]).read_text().splitlines() if not line.startswith("#")]
    return {canonicalize_name(package): version for package, version in (line.split("==") for line in lines)}


def allennlps_own_requirements():
    """Those of its metadata for the Pythons that it was made for."""
    for requirement in map(Requirement, requires("allennlp")):
        if requirement.marker is None or requirement.marker.evaluate({"python_version": "3.10", "extra": ""}):
            yield requirement


@pytest.mark.parametrize(
    ("name", "wanted"), [("MODERN", requirements_for_modern_pythons()), ("CLASSIC", list(allennlps_own_requirements()))]
)
def test_each_requirement_is_pinned_within_its_bounds(name, wanted):
    versions = pins(name)
    for requirement in wanted:
        version = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement}, but {version}"


@pytest.mark.parametrize("name", SETS)
def test_pinned_versions_work_together(name):
    versions = pins(name)

    def installed(package):
        try:
            return versions[canonicalize_name(package)]
        except KeyError:
            raise PackageNotFoundError(package) from None

    check_versions(installed)


def test_commands_of_the_readme_are_those_of_make():
    """`make` adds the tools for tests, and says nothing."""
    documented = re.findall(r"^pip (install .+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    made = re.findall(r"/pip (install .+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert made
    assert {command.replace("--quiet ", "").replace("'.[dev]'", ".") for command in made} <= set(documented)
