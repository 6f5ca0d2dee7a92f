from elmo_tasks.commands import report_config
from elmo_tasks.commands.report_config import Setting, differences, shipped_config

BASE = {"trainer": {"num_epochs": 3, "optimizer": {"lr": 0.1}}, "path": "a", "layers": [{"size": 1}]}


def test_only_settings_that_differ_are_listed_with_dotted_keys():
    other = {"trainer": {"num_epochs": 3, "optimizer": {"lr": 0.2}}, "path": "a", "layers": [{"size": 1}]}
    assert differences(BASE, [other]) == [Setting("trainer.optimizer.lr", "0.1", ["0.2"])]


def test_a_setting_that_one_config_lacks_is_not_set():
    longer = {**BASE, "seed": 1}
    shorter = {name: value for name, value in BASE.items() if name != "path"}
    assert differences(BASE, [longer, shorter]) == [
        Setting("path", '"a"', ['"a"', None]),
        Setting("seed", None, ["1", None]),
    ]


def test_not_set_and_null_are_two_things():
    assert differences(BASE, [{**BASE, "seed": None}]) == [Setting("seed", None, ["null"])]


def test_an_empty_object_is_a_setting():
    averaged = {**BASE, "trainer": {**BASE["trainer"], "moving_average": {}}}
    assert differences(BASE, [averaged]) == [Setting("trainer.moving_average", None, ["{}"])]


def test_lists_are_compared_whole():
    other = {**BASE, "layers": [{"size": 2}]}
    assert differences(BASE, [other]) == [Setting("layers", '[{"size": 1}]', ['[{"size": 2}]'])]


def test_without_a_base_every_setting_is_listed():
    assert [setting.key for setting in differences({}, [BASE])] == [
        "layers",
        "path",
        "trainer.num_epochs",
        "trainer.optimizer.lr",
    ]


def test_shipped_config_is_that_of_the_data_set():
    assert shipped_config({"dataset_reader": {"type": "mrpc"}}).endswith("/training_configs/mrpc.jsonnet")
    assert shipped_config({"dataset_reader": {"type": "another"}}) is None
    assert shipped_config({}) is None


def test_without_the_sources_there_is_no_shipped_config(monkeypatch, tmp_path):
    monkeypatch.setattr(report_config, "SHIPPED_CONFIGS", tmp_path)
    assert shipped_config({"dataset_reader": {"type": "mr"}}) is None
