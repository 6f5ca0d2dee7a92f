import json
import pickle

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.predictors import Predictor
from distributed import LocalCluster

from elmo_tasks.commands import bulk_workers
from elmo_tasks.commands.bulk_input import BulkInput, Part
from elmo_tasks.commands.bulk_workers import PredictorSettings, predict_part, predict_parts
from elmo_tasks.predictors import SentencePredictor


@Predictor.register("choosy_for_test")
class ChoosyPredictor(SentencePredictor):
    """Fails at one word, or at a batch that has another."""

    def predict_json(self, inputs):
        if "poison" in inputs["sentence"]:
            raise ValueError("poisoned")
        return super().predict_json(inputs)

    def predict_batch_json(self, inputs):
        if any("lonely" in row["sentence"] for row in inputs):
            raise ConfigurationError("too many")
        return [self.predict_json(row) for row in inputs]


@pytest.fixture(scope="module")
def settings(trained_run):
    return PredictorSettings(str(trained_run / "model.tar.gz"), digest="of the first")


def part_of(*sentences):
    rows = [{"sentence": sentence, "id": str(number)} for number, sentence in enumerate(sentences)]
    return Part(0, [f"rows, line {number}" for number in range(1, len(rows) + 1)], pickle.dumps(rows))


def predict(settings, batch_size, part):
    return predict_part(settings, batch_size, part.places, part.payload)


@pytest.mark.parametrize("batch_size", [1, 2, 9])
def test_outputs_are_those_of_the_predictor_in_the_order_of_the_rows(settings, batch_size):
    outcome = predict(settings, batch_size, part_of("a film", "", "two hours that feel like nine"))
    outputs = [json.loads(line) for line in outcome.outputs.splitlines()]
    assert [output["id"] for output in outputs] == ["0", "1", "2"]
    expected = bulk_workers.load_predictor(settings).predict("two hours that feel like nine")
    assert outputs[2]["label"] == expected["label"]
    assert outputs[2]["label_probabilities"] == pytest.approx(expected["label_probabilities"], abs=1e-6)


def test_no_worker_starts_when_nothing_is_left(settings, monkeypatch):
    monkeypatch.setattr(bulk_workers, "LocalCluster", lambda **options: pytest.fail("it was started"))
    assert list(predict_parts(iter([]), settings, batch_size=1)) == []


def test_instances_of_a_reader_are_predicted(settings, tmp_path):
    (tmp_path / "rows.txt").write_text("a film_!_1\nodd_!_0\n")
    predictor = bulk_workers.load_predictor(settings)
    (part,) = BulkInput(predictor, [str(tmp_path / "rows.txt")], use_dataset_reader=True).parts(9)
    outputs = [json.loads(line) for line in predict(settings, 1, part).outputs.splitlines()]
    assert [output["id"] for output in outputs] == ["rows:1", "rows:2"]


@pytest.mark.parametrize("batch_size", [1, 4])
def test_a_failing_row_is_named_by_its_place(settings, batch_size):
    choosy = settings._replace(predictor="choosy_for_test")
    outcome = predict(choosy, batch_size, part_of("fine", "fine", "poison", "fine"))
    assert outcome == ("", "rows, line 3: ValueError: poisoned")


def test_a_failing_batch_is_named_by_its_first_row_if_each_row_is_fine(settings):
    choosy = settings._replace(predictor="choosy_for_test")
    outcome = predict(choosy, 2, part_of("fine", "fine", "lonely", "fine"))
    assert outcome.error == "rows, line 3, and the 1 rows after it together: too many"


def test_the_model_is_loaded_once(settings, monkeypatch):
    bulk_workers._predictor_of_worker.cache_clear()
    loaded = []
    load = bulk_workers.load_predictor
    monkeypatch.setattr(bulk_workers, "load_predictor", lambda settings: loaded.append(settings) or load(settings))
    for _ in range(2):
        predict(settings, 1, part_of("a film"))
    assert len(loaded) == 1


def test_workers_of_a_scheduler_predict_each_part_once(settings):
    parts = [part_of(str(number))._replace(number=number) for number in range(7)]
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster:
        outcomes = list(predict_parts(iter(parts), settings, 2, scheduler=cluster.scheduler_address))
    assert sorted(part.number for part, _ in outcomes) == list(range(7))
    assert all(json.loads(outcome.outputs)["tokens"] == [str(part.number)] for part, outcome in outcomes)


@pytest.mark.parametrize("has_scheduler", [False, True])
def test_a_scheduler_without_workers_or_none_at_all_is_an_error(settings, monkeypatch, has_scheduler):
    monkeypatch.setattr(bulk_workers, "PATIENCE", 0.3)
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:
        address = cluster.scheduler_address if has_scheduler else "tcp://127.0.0.1:9"
        with pytest.raises(ConfigurationError, match="must be the address of a scheduler of Dask that has workers"):
            list(predict_parts(iter([part_of("a film")]), settings, 1, scheduler=address))


def test_a_worker_that_outlives_a_command_takes_the_archive_that_lies_there_now(settings, monkeypatch):
    loaded = []
    monkeypatch.setattr(bulk_workers, "load_predictor", loaded.append)
    bulk_workers._predictor_of_worker.cache_clear()
    for digest in ("one", "one", "another"):
        bulk_workers._predictor_of_worker(settings._replace(digest=digest))
    bulk_workers._predictor_of_worker.cache_clear()
    assert [one.digest for one in loaded] == ["one", "another"]
