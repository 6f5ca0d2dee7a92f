"""Whole comparisons: of runs whose figures are scripted, and of the shipped configs on the sample."""

import json
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands import comparison_picture, study_runner
from elmo_tasks.commands.compare import compare_variants
from elmo_tasks.commands.results import tabulate

ROOT = Path(__file__).parents[2]
VARIANTS = {"rate_10": {"rate": 10}, "rate_2": {"rate": 2}, "base": {}}


class Training:
    """Stands for `train_model`: the accuracy is a hundredth of the rate, and a thousandth of the seed."""

    def __init__(self):
        self.runs = []
        self.caches = set()
        self.fails_at = None

    def __call__(self, params, serialization_dir, **kwargs):
        config = params.as_dict(quiet=True)
        directory = Path(serialization_dir)
        self.runs.append(f"{directory.parent.name}/{directory.name}")
        if self.runs[-1] == self.fails_at:
            raise ValueError("no more memory")
        self.caches.add(config["embedder"]["cache"]["directory"])
        directory.mkdir(parents=True, exist_ok=True)
        accuracy = config["rate"] / 100 + config["random_seed"] / 1000
        metrics = {"training_duration": "0:00:05", "best_validation_accuracy": 0.5, "test_accuracy": accuracy}
        (directory / "metrics.json").write_text(json.dumps(metrics))


@pytest.fixture
def training(monkeypatch):
    training = Training()
    monkeypatch.setattr(study_runner, "train_model", training)
    return training


@pytest.fixture
def pictures(monkeypatch):
    """The names in each picture that would be drawn, and its folder."""
    pictures = []
    monkeypatch.setattr(
        comparison_picture,
        "draw_comparison",
        lambda comparison, path: pictures.append((list(comparison["variants"]), path)),
    )
    return pictures


@pytest.fixture
def paths(tmp_path, training, pictures):
    """The paths of config, variants and comparison, whose training and drawing are scripted."""
    config = {
        "dataset_reader": {"type": "mr"},
        "train_data_path": "a#train",
        "validation_data_path": "a#dev",
        "test_data_path": "data/b",
        "rate": 1,
        "embedder": {"type": "elmo", "cache": {"directory": None}},
        "trainer": {"validation_metric": "+accuracy"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "variants.libsonnet").write_text(json.dumps(VARIANTS))
    return tuple(str(tmp_path / name) for name in ("config.json", "variants.libsonnet", "comparison"))


def test_every_variant_is_trained_with_every_seed_and_compared_to_the_baseline(paths, training, pictures, capsys):
    comparison = compare_variants(*paths, num_seeds=2)
    folder = Path(paths[2])
    # The baseline is the first by name; numbers go by their size.
    assert training.runs == [f"{name}/seed_{seed}" for name in ("base", "rate_2", "rate_10") for seed in (0, 1)]
    assert list(comparison["variants"]) == ["base", "rate_2", "rate_10"]
    # 0.010 and 0.011; 0.020 and 0.021; 0.100 and 0.101.
    accuracies = {name: variant["metrics"]["test_accuracy"] for name, variant in comparison["variants"].items()}
    assert accuracies["rate_10"]["by_seed"] == pytest.approx([0.1, 0.101])
    difference = comparison["variants"]["rate_2"]["differences"]["test_accuracy"]
    assert difference["differences"] == pytest.approx([0.01, 0.01])
    assert comparison["unfinished"] == []
    assert json.loads((folder / "comparison.json").read_text()) == comparison
    assert "| rate_2 | 0.0205 ± 0.0007 |" in (folder / "comparison.md").read_text()
    assert pictures[-1] == (["base", "rate_2", "rate_10"], folder / "comparison.png")
    assert (folder / "rate_2/cross_validation.json").is_file()
    printed = capsys.readouterr().out
    assert "rate_10 (3 of 3)" in printed
    assert "data/b, 2 seeds" in printed


def test_all_variants_share_one_cache_of_activations(paths, training):
    compare_variants(*paths, num_seeds=1)
    assert training.caches == {str(Path(paths[2]) / "activations")}


def test_results_reads_what_compare_has_printed(paths, capsys):
    compare_variants(*paths, num_seeds=2)
    printed = capsys.readouterr().out
    tabulate([paths[2]])
    assert capsys.readouterr().out in printed


def test_another_baseline_changes_the_differences_and_trains_nothing(paths, training):
    compare_variants(*paths, num_seeds=1)
    del training.runs[:]
    comparison = compare_variants(*paths, num_seeds=1, baseline="rate_10")
    assert training.runs == []
    assert comparison["variants"]["base"]["differences"]["test_accuracy"]["mean"] == pytest.approx(-0.09)
    assert comparison["variants"]["rate_10"]["differences"] is None


def test_an_interrupted_comparison_keeps_what_is_finished_and_goes_on(paths, training):
    training.fails_at = "rate_2/seed_1"
    with pytest.raises(ValueError, match="no more memory"):
        compare_variants(*paths, num_seeds=2)
    partial = json.loads((Path(paths[2]) / "comparison.json").read_text())
    assert (list(partial["variants"]), partial["unfinished"]) == (["base"], ["rate_2", "rate_10"])

    training.fails_at = None
    del training.runs[:]
    comparison = compare_variants(*paths, num_seeds=2)
    assert training.runs == ["rate_2/seed_1", "rate_10/seed_0", "rate_10/seed_1"]
    assert comparison["unfinished"] == []


def test_a_variant_that_failed_may_come_back_under_another_name(paths, training):
    training.fails_at = "rate_2/seed_0"
    with pytest.raises(ValueError, match="no more memory"):
        compare_variants(*paths, num_seeds=1)
    Path(paths[1]).write_text(json.dumps({"base": {}, "rate_3": {"rate": 3}, "rate_10": {"rate": 10}}))
    comparison = compare_variants(*paths, num_seeds=1)
    assert list(comparison["variants"]) == ["base", "rate_3", "rate_10"]


def test_variants_and_seeds_can_be_added(paths, training):
    compare_variants(*paths, num_seeds=1)
    del training.runs[:]
    Path(paths[1]).write_text(json.dumps({**VARIANTS, "new": {"rate": 3}}))
    comparison = compare_variants(*paths, num_seeds=2)
    assert [run for run in training.runs if run.endswith("seed_0")] == ["new/seed_0"]
    assert len(comparison["variants"]) == 4


@pytest.mark.parametrize(
    ("variants", "options", "message"),
    [
        (
            {**VARIANTS, "rate_2": {"rate": 3}},
            {},
            r"comparison/rate_2 must hold a study .*`rate` was 2, but is 3",
        ),
        (VARIANTS, {"overrides": "{patience: 3}"}, r"`patience` was not set, but is 3"),
        ({"base": {}, "rate_2": {"rate": 2}}, {}, "folder of a comparison of these variants, but has rate_10"),
        (VARIANTS, {"baseline": "rate_3"}, "`--baseline` must be one of base, rate_2, rate_10, but is 'rate_3'"),
        (VARIANTS, {"num_seeds": 0}, "`--seeds` must be at least 1, but is 0"),
        (VARIANTS, {"data": "rows"}, "`--data` must come with `--folds`"),
        ({**VARIANTS, "a": {"modell.x": 1}}, {}, r"the variant 'a' must change places .*modell\.x"),
        ({**VARIANTS, "a": {"test_data_path": "a#dev"}}, {}, "must be other data than `validation_data_path`"),
        ({**VARIANTS, "a": {"trainer.num_epoch": 3}}, {}, "`trainer.num_epoch` must be .* did you mean `num_epochs`"),
    ],
)
def test_what_does_not_belong_together_is_told_before_anything_is_trained(paths, training, variants, options, message):
    compare_variants(*paths, num_seeds=1)
    before = (Path(paths[2]) / "comparison.json").read_text()
    del training.runs[:]
    Path(paths[1]).write_text(json.dumps(variants))
    with pytest.raises(ConfigurationError, match=message):
        compare_variants(*paths, **{"num_seeds": 2, **options})
    assert training.runs == []
    assert (Path(paths[2]) / "comparison.json").read_text() == before


def test_a_file_in_place_of_the_folder_is_told_before_anything_is_read(tmp_path):
    (tmp_path / "comparison").touch()
    with pytest.raises(
        ConfigurationError, match=r"comparison must be a folder, new or not, but .*comparison is a file"
    ):
        compare_variants("no_config", "no_variants", str(tmp_path / "comparison"))


def test_variants_on_other_folds_are_refused(paths):
    Path(paths[1]).write_text(json.dumps({"a": {}, "b": {"dataset_reader.split_seed": 1}}))
    with pytest.raises(ConfigurationError, match="compared studies must have the same `split_seed`, but have 1 and 0"):
        compare_variants(*paths, num_folds=2, data="rows")
    assert not Path(paths[2]).exists()


def test_the_command_hands_its_options_on(paths, training, allennlp):
    config, variants, folder = paths
    printed = allennlp(
        "compare", config, variants, "-s", folder, "--seeds", 1, "--folds", 2, "--data", "rows", "--baseline", "rate_2",
        "-o", "{rate: 4}",
    )  # fmt: skip
    assert training.runs[:2] == ["fold_0/seed_0", "fold_1/seed_0"]
    assert "rows#test, 2 folds, 1 seed" in printed
    # The option stands for all variants, each of which may change it again.
    assert json.loads((Path(folder) / "base/study.json").read_text())["config"]["rate"] == 4
    assert json.loads((Path(folder) / "rate_2/study.json").read_text())["config"]["rate"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(("task", "comparison"), [("mrpc", "layers"), ("mr", "data_efficiency")])
def test_a_shipped_comparison_runs_on_the_sample(task, comparison, tmp_path, monkeypatch, allennlp):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("ELMO_TASKS_BILM", str(ROOT / "fixtures/bilm"))
    smoke = "import 'training_configs/overrides/smoke.libsonnet'"
    variants = f"training_configs/comparisons/{comparison}.libsonnet"
    short = tmp_path / "short.libsonnet"
    short.write_text(
        f"local smoke = {smoke.replace(chr(39) + 'training', chr(39) + str(ROOT) + '/training')};\n"
        f"local all = import '{ROOT}/{variants}';\n"
        "{ [name]: all[name] + smoke for name in std.objectFields(all) }"
    )
    printed = allennlp("compare", f"training_configs/{task}.jsonnet", short, "-s", tmp_path / "runs", "--seeds", 1)
    results = json.loads((tmp_path / "runs/comparison.json").read_text())
    assert results["unfinished"] == []
    for name, variant in results["variants"].items():
        assert name in printed
        assert 0 <= variant["metrics"]["test_accuracy"]["mean"] <= 1
    assert (tmp_path / "runs/comparison.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "runs/activations").is_dir()
    assert not list((tmp_path / "runs").glob("*/activations"))
