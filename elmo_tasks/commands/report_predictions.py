"""What the model of a run makes of labelled data, and the errors that it is surest of."""

import os
from typing import Any, Dict, List, NamedTuple, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.data import Instance
from allennlp.data.fields import TextField
from allennlp.models import Model
from allennlp.models.archival import Archive, load_archive
from allennlp.predictors import Predictor

from elmo_tasks.commands.report_runs import TrainedRun
from elmo_tasks.commands.report_saliency import SignedSaliency
from elmo_tasks.models.classifier import Classifier
from elmo_tasks.modules.elmo_embedder import ElmoEmbedder
from elmo_tasks.modules.length_batches import length_batches

# Tokens of a batch, padding included.
_MAX_TOKENS = 4096


class NoPredictionsError(Exception):
    """There is nothing to predict, or no truth to compare with; the message is a sentence that says why."""


class Prediction(NamedTuple):
    """
    # Parameters

    place : `str`
        File and line of the row.
    texts : `List[List[str]]`
        The tokens of each text.
    true : `str`
    predicted : `str`
    confidence : `float`
        The probability of the predicted label.
    saliency : `List[List[float]]`
        As `SignedSaliency` gives it; empty for a row that is not explained.
    """

    place: str
    texts: List[List[str]]
    true: str
    predicted: str
    confidence: float
    saliency: List[List[float]]


class Predictions(NamedTuple):
    """
    # Parameters

    data : `str`
        The path of what was predicted.
    labels : `List[str]`
        Sorted.
    rows : `List[Prediction]`
        In the order of the data.
    errors : `List[Prediction]`
        The wrong ones of highest confidence, that first, with saliency.
    """

    data: str
    labels: List[str]
    rows: List[Prediction]
    errors: List[Prediction]


def predict(run: TrainedRun, data: Optional[str], num_errors: int, cuda_device: int = -1) -> Predictions:
    """
    # Parameters

    run : `TrainedRun`
    data : `Optional[str]`
        A path for the reader of the run's test data; `None`: the test data of its config.
    num_errors : `int`
        How many errors to give at most.
    cuda_device : `int`, optional (default = `-1`)
        A GPU, or -1 for the CPU.

    # Returns

    `Predictions`

    # Raises

    `NoPredictionsError`
        See there.
    `ConfigurationError`
        The data cannot be read.
    """
    data = data or run.config.get("test_data_path")
    model_class, _ = Model.resolve_class_name(run.config["model"]["type"])
    if not issubclass(model_class, Classifier):
        raise NoPredictionsError("The model is no classifier of this package.")
    if run.archive is None:
        raise NoPredictionsError("The run has no archive yet.")
    if not data:
        raise NoPredictionsError("The config names no `test_data_path`; `--data` can.")
    archive = load_archive(run.archive, cuda_device=cuda_device)
    # Before there is a predictor, which would have the reader keep rows that no evaluation counts.
    try:
        instances = list(archive.validation_dataset_reader.read(data))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"the test data of {run.path} must be at hand, but {error}; `--data` can name another path"
        ) from error
    if "label" not in instances[0].fields:
        raise NoPredictionsError(f"The rows of {data} have no labels.")
    _fill_caches(archive, instances)
    predictor = Predictor.from_archive(archive)
    rows = _predict_in_batches(predictor, instances)
    wrong = [position for position, row in enumerate(rows) if row.predicted != row.true]
    surest = sorted(wrong, key=lambda position: -rows[position].confidence)[:num_errors]
    saliency = SignedSaliency(predictor)
    errors = [
        rows[position]._replace(saliency=saliency.of_tokens(instances[position], rows[position].predicted))
        for position in Tqdm.tqdm(surest, desc=f"explaining errors of {run.name}")
    ]
    # The data may have a label that the training part has not.
    labels = {*archive.model.label_names, *(row.true for row in rows)}  # type: ignore[misc]
    return Predictions(str(data), sorted(labels), rows, errors)


def _fill_caches(archive: Archive, instances: List[Instance]) -> None:
    """Where there is a cache, the biLM then runs once for each sentence, not again for each step of an explanation."""
    for instance in instances:
        archive.validation_dataset_reader.apply_token_indexers(instance)
    for module in archive.model.modules():
        if isinstance(module, ElmoEmbedder):
            module.prepare_for_training(lambda: iter(instances), lambda: iter(instances))


def _predict_in_batches(predictor: Predictor, instances: List[Instance]) -> List[Prediction]:
    texts = [_texts(instance) for instance in instances]
    lengths = [max(map(len, row)) for row in texts]
    rows: Dict[int, Prediction] = {}
    with Tqdm.tqdm(total=len(instances), desc="predicting") as progress:
        for positions in length_batches(lengths, _MAX_TOKENS):
            outputs = predictor.predict_batch_instance([instances[position] for position in positions])
            for position, output in zip(positions, outputs):
                rows[position] = _prediction(instances[position], texts[position], output)
            progress.update(len(positions))
    return [rows[position] for position in range(len(instances))]


def _prediction(instance: Instance, texts: List[List[str]], output: Dict[str, Any]) -> Prediction:
    metadata = instance["metadata"].metadata  # type: ignore[attr-defined]
    return Prediction(
        place=f"{os.path.basename(metadata['file'])}:{metadata['line']}",
        texts=texts,
        true=str(instance["label"].label),  # type: ignore[attr-defined]
        predicted=output["label"],
        confidence=output["label_probabilities"][output["label"]],
        saliency=[],
    )


def _texts(instance: Instance) -> List[List[str]]:
    fields = [field for field in instance.fields.values() if isinstance(field, TextField)]
    return [[token.ensure_text() for token in field.tokens] for field in fields]
