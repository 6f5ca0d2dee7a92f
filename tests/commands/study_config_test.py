import json

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.study_config import fold_study_config, main_metric, own_parts_study_config, run_config


def mr_config(**changes):
    return {
        "dataset_reader": {"type": "mr", "fold": 3},
        "train_data_path": "data/mr/rt_train.txt#train",
        "validation_data_path": "data/mr/rt_train.txt#dev",
        "test_data_path": "data/mr/rt_val.txt",
        "model": {"token_embedders": {"elmo": {"type": "elmo", "cache": {"directory": None}}}},
        "trainer": {"validation_metric": "+accuracy"},
        **changes,
    }


def paths_of(config):
    return [config[part + "_data_path"] for part in ("train", "validation", "test")]


def test_the_parts_of_a_fold_come_from_one_path():
    config = fold_study_config(mr_config(), 5, "corpus")
    assert paths_of(config) == ["corpus#train", "corpus#dev", "corpus#test"]
    assert config["dataset_reader"] == {"type": "mr", "num_folds": 5}
    assert run_config(config, 4, 0, "cache")["dataset_reader"] == {"type": "mr", "num_folds": 5, "fold": 4}


def test_the_test_part_is_looked_at_even_if_the_config_would_not():
    assert fold_study_config(mr_config(), 5, "corpus")["evaluate_on_test"] is True
    assert own_parts_study_config(mr_config(evaluate_on_test=False))["evaluate_on_test"] is True


def test_files_in_one_folder_stand_for_the_folder():
    assert paths_of(fold_study_config(mr_config(), 5, None))[2] == "data/mr#test"


def test_files_in_the_working_directory_stand_for_it():
    config = mr_config(train_data_path="a.txt", validation_data_path="b.txt", test_data_path="c.txt")
    assert paths_of(fold_study_config(config, 5, None))[2] == ".#test"


def test_one_file_with_parts_stands_for_itself():
    config = mr_config(test_data_path="data/mr/rt_train.txt#test")
    assert paths_of(fold_study_config(config, 5, None))[1] == "data/mr/rt_train.txt#dev"


@pytest.mark.parametrize("path", ["elsewhere/rt_val.txt", ["data/mr/a.txt", "data/mr/b.txt"]])
def test_data_that_no_path_stands_for_must_be_named(path):
    with pytest.raises(ConfigurationError, match="`--data` must name the whole data set by one path"):
        fold_study_config(mr_config(test_data_path=path), 5, None)


def test_a_reader_without_folds_is_told_from_one_with_folds():
    with pytest.raises(ConfigurationError, match="'mrpc' lacks fold and num_folds; without `--folds`"):
        fold_study_config(mr_config(dataset_reader={"type": "mrpc"}), 5, "corpus")


def test_a_second_reader_gets_the_same_fold():
    config = fold_study_config(mr_config(validation_dataset_reader={"type": "mr"}), 5, "corpus")
    assert run_config(config, 2, 0, "cache")["validation_dataset_reader"] == {"type": "mr", "num_folds": 5, "fold": 2}


def test_a_second_reader_must_divide_the_data_as_the_first():
    for option, value in (("split_seed", 1), ("dev_share", 0.2), ("label_names", {"0": "no"}), ("encoding", "cp1252")):
        with pytest.raises(ConfigurationError, match=f"`{option}` must be the same in"):
            fold_study_config(mr_config(validation_dataset_reader={"type": "mr", option: value}), 5, "corpus")
    # Its default, said, is no difference; nor is how the texts are cut.
    config = mr_config(validation_dataset_reader={"type": "mr", "split_seed": 0, "max_tokens": 9})
    assert fold_study_config(config, 5, "corpus")["validation_dataset_reader"]["num_folds"] == 5


def test_one_fold_is_no_cross_validation():
    with pytest.raises(ConfigurationError, match="`--folds` must be at least 2, but is 1"):
        fold_study_config(mr_config(), 1, None)


def test_own_parts_stay_as_they_are():
    config = own_parts_study_config(mr_config())
    assert paths_of(config) == paths_of(mr_config())
    assert run_config(config, None, 0, "cache")["dataset_reader"] == {"type": "mr", "fold": 3}


@pytest.mark.parametrize("key", ["validation_data_path", "test_data_path"])
def test_own_parts_to_select_and_to_test_on_must_be_there(key):
    with pytest.raises(ConfigurationError, match=f"`{key}` must be set"):
        own_parts_study_config(mr_config(**{key: None}))


def test_selecting_on_the_test_data_is_refused():
    with pytest.raises(ConfigurationError, match=r"`test_data_path` must be other data .* data/mr/rt_val\.txt"):
        own_parts_study_config(mr_config(validation_data_path="data/mr/rt_val.txt"))


def test_the_seed_is_that_of_all_three_generators():
    config = run_config(own_parts_study_config(mr_config(numpy_seed=13)), None, 7, "cache")
    assert [config[name] for name in ("random_seed", "numpy_seed", "pytorch_seed")] == [7, 7, 7]


def test_a_cache_without_folder_gets_the_one_of_the_study():
    config = mr_config()
    config["model"]["others"] = [
        {"type": "elmo", "cache": {"directory": "mine"}},
        {"type": "elmo", "cache": {}},
        {"type": "elmo", "cache": None},
        {"type": "elmo_token_embedder", "cache": {}},
    ]
    model = run_config(own_parts_study_config(config), None, 0, "shared")["model"]
    assert model["token_embedders"]["elmo"]["cache"] == {"directory": "shared"}
    assert [other["cache"] for other in model["others"]] == [{"directory": "mine"}, {"directory": "shared"}, None, {}]


def test_the_config_of_the_caller_stays_as_it_was():
    config = mr_config()
    before = json.dumps(config)
    run_config(fold_study_config(config, 5, None), 0, 0, "cache")
    run_config(own_parts_study_config(config), None, 0, "cache")
    assert json.dumps(config) == before


@pytest.mark.parametrize(
    ("trainer", "name"),
    [
        ({"validation_metric": "+accuracy"}, "test_accuracy"),
        ({"validation_metric": ["-perplexity", "+accuracy"]}, "test_perplexity"),
        ({}, "test_loss"),
    ],
)
def test_the_main_metric_is_the_one_that_selects(trainer, name):
    assert main_metric({"trainer": trainer}) == name
