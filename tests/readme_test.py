"""What the README shows and lists is so."""

import re
from pathlib import Path

from elmo_tasks.common.environment import KNOBS

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_every_environment_variable_is_in_the_readme_with_its_default():
    table = re.findall(r"^\| `(ELMO_TASKS_\w+)` \|.*\| (.+) \|$", README, re.MULTILINE)
    assert dict(table) == {knob.name: f"`{knob.default}`" if knob.default else "none: in memory" for knob in KNOBS}


def test_the_example_in_python_gives_the_shapes_that_it_names():
    (example,) = re.findall(r"```python\n(.+?)```", README, re.DOTALL)
    names: dict = {}
    exec(example, names)
    assert names["vectors"].shape == (2, 3, 512)
    assert names["layers"].shape == (3, 2, 3, 512)
    assert names["vectors"][1, 1:].abs().max() == 0 < names["vectors"][1, 0].abs().max()
