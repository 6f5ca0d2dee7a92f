import re
from pathlib import Path

import elmo_tasks
from elmo_tasks.common.version import VERSION

ROOT = Path(__file__).parents[2]


def test_version_has_three_numbers():
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


def test_package_and_setup_give_the_same_version():
    pattern = re.search(r"re\.search\(r'(.+?)',", (ROOT / "setup.py").read_text()).group(1)
    source = (ROOT / "elmo_tasks/common/version.py").read_text()
    assert re.search(pattern, source, re.MULTILINE).group(1) == VERSION == elmo_tasks.__version__
