"""
Write the evaluated twin of every config into `training_configs/json/`, with every environment knob at its default.

AllenNLP reads a `.jsonnet` file as plain JSON where the `jsonnet` package is missing (it has to be compiled on some
machines); the twins train there. `tests/training_configs_test.py` checks that they are up to date.
"""

import json
from pathlib import Path

from _jsonnet import evaluate_file

from elmo_tasks.common.environment import KNOBS

HERE = Path(__file__).parent
TWINS = HERE / "json"


def configs():
    """The shipped configs: every `.jsonnet` file outside of `lib` and `overrides` (those are `.libsonnet`)."""
    return sorted(HERE.rglob("*.jsonnet"))


def twin_path(config: Path) -> Path:
    return (TWINS / config.relative_to(HERE)).with_suffix(".json")


def evaluated(config: Path) -> str:
    defaults = {knob.name: knob.default for knob in KNOBS}
    return json.dumps(json.loads(evaluate_file(str(config), ext_vars=defaults)), indent=2) + "\n"


if __name__ == "__main__":
    for config in configs():
        twin = twin_path(config)
        twin.parent.mkdir(parents=True, exist_ok=True)
        twin.write_text(evaluated(config))
        print(twin.relative_to(HERE.parent))
