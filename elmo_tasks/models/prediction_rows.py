"""What `allennlp evaluate --predictions-output-file` writes."""

import json
from os import PathLike
from typing import Any, Callable, Dict, Optional, Union

import torch
from allennlp.data import DataLoader
from allennlp.evaluation import Evaluator, SimpleEvaluator
from allennlp.evaluation.serializers.serializers import Serializer, SimpleSerializer
from allennlp.models import Model

from elmo_tasks.models.classifier import Classifier


@Serializer.register("prediction_rows")
class PredictionRows(Serializer):
    """
    One JSON line per row, with the keys of `allennlp predict` and the true label. (AllenNLP's own serializer
    writes one line per batch, with everything that went into the model: ELMo's 50 character ids per token.)

    Registered as a `Serializer` with name "prediction_rows".
    """

    def __call__(
        self,
        batch: Dict[str, Any],
        output_dict: Dict[str, Any],
        data_loader: DataLoader,
        output_postprocess_function: Optional[Callable[[Dict[str, Any]], Dict[str, Any]]] = None,
    ) -> str:
        """
        # Parameters

        batch : `Dict[str, Any]`
            What went into the model; not written.
        output_dict : `Dict[str, Any]`
            What `forward` returned.
        data_loader : `DataLoader`
            Not used.
        output_postprocess_function : `Callable`, optional (default = `None`)
            The model's `make_output_human_readable`.

        # Returns

        `str`
            The lines of the batch, without a line end after the last.
        """
        outputs = output_postprocess_function(output_dict) if output_postprocess_function else output_dict
        # What is no list belongs to the batch as a whole, such as the loss.
        columns = {name: values for name, values in outputs.items() if isinstance(values, list)}
        return "\n".join(json.dumps(dict(zip(columns, row))) for row in zip(*columns.values()))


@Evaluator.register("prediction_rows")
class PredictionRowsEvaluator(SimpleEvaluator):
    """
    AllenNLP's evaluator, which writes the predictions of this package's classifiers as `PredictionRows`. It
    is the one that `allennlp evaluate` takes where a config says nothing, so that no config need say it;
    other models, and configs with an `evaluation` of their own, get what they get without this package.

    Registered as an `Evaluator` with name "prediction_rows".

    # Parameters

    batch_serializer : `Serializer`, optional (default = `PredictionRows` for a `Classifier`, else `SimpleSerializer`)
    cuda_device : `Union[int, torch.device]`, optional (default = `-1`)
    postprocessor_fn_name : `str`, optional (default = `"make_output_human_readable"`)
        The model's method that makes the output readable.
    """

    def __init__(
        self,
        batch_serializer: Optional[Serializer] = None,
        cuda_device: Union[int, torch.device] = -1,
        postprocessor_fn_name: str = "make_output_human_readable",
    ) -> None:
        super().__init__(batch_serializer, cuda_device, postprocessor_fn_name)
        self._chosen_by_model = batch_serializer is None

    def __call__(
        self,
        model: Model,
        data_loader: DataLoader,
        batch_weight_key: Optional[str] = None,
        metrics_output_file: Optional[Union[str, PathLike]] = None,
        predictions_output_file: Optional[Union[str, PathLike]] = None,
    ) -> Dict[str, Any]:
        """See `Evaluator`."""
        if self._chosen_by_model:
            self.batch_serializer = PredictionRows() if isinstance(model, Classifier) else SimpleSerializer()
        return super().__call__(
            model,
            data_loader,
            batch_weight_key,  # type: ignore[arg-type]
            metrics_output_file,  # type: ignore[arg-type]
            predictions_output_file,  # type: ignore[arg-type]
        )


Evaluator.default_implementation = "prediction_rows"
