"""From JSON or a data file to one readable prediction per row."""

from typing import Any, Dict, List, Tuple

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import JsonDict, sanitize
from allennlp.data import Batch, DatasetReader, Instance
from allennlp.data.fields import LabelField
from allennlp.models import Model
from allennlp.modules import TextFieldEmbedder
from allennlp.nn.util import move_to_device

from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.models.classifier import LABEL_NAMESPACE
from elmo_tasks.predictors.json_lines import JsonLinesPredictor


class ClassifierPredictor(JsonLinesPredictor):
    """
    Each line of input is a JSON object with one text or several; of other keys, `id` is handed on, and all
    others are ignored, among them `label`: it is not needed, and with or without it the prediction is the
    same. With `allennlp predict --use-dataset-reader` the input is a data file of the reader instead.

    For every row comes one line of output, in their order: `id` (null if there was none), `label`,
    `label_probabilities` by name, and the words. A blank text is no error; it is classified like any other,
    as the reader makes tokens of it.

    The prediction of a row depends neither on the other rows nor on `--batch-size`, up to rounding, if the
    embedder keeps no state. AllenNLP's `elmo_token_embedder` does: with it, each row starts where the row at
    the same place of the batch before ended.

    # Parameters

    model : `Model`
    dataset_reader : `DatasetReader`
        Makes instances of texts or files; its `keep_every_row` is set, its `max_instances` lifted.
    frozen : `bool`, optional (default = `True`)
        Whether the model is put into evaluation mode.
    """

    # The keys of the texts, in the order of the arguments of the reader's `text_to_instance`.
    text_keys: Tuple[str, ...] = ()

    advice = "For a data file as the reader knows it, pass --use-dataset-reader."

    def __init__(self, model: Model, dataset_reader: DatasetReader, frozen: bool = True) -> None:
        super().__init__(model, dataset_reader, frozen)
        # In training, blank rows are left out, malformed ones are errors, and a trial run may have read only the first
        # rows; outputs must line up with inputs.
        dataset_reader.keep_every_row = True  # type: ignore[attr-defined]
        dataset_reader.max_instances = None

    @property
    def accepted(self) -> str:  # type: ignore[override]
        """See `JsonLinesPredictor`."""
        texts = ", ".join(f'"{key}": "..."' for key in self.text_keys)
        return f'a JSON object {{{texts}}} with an optional "id" and "label"'

    def check_inputs(self, inputs: Any, where: str) -> None:
        """See `JsonLinesPredictor`."""
        super().check_inputs(inputs, where)
        for key in self.text_keys:
            if key not in inputs:
                raise ConfigurationError(
                    f"{where} must be {self.accepted}, but has no {key!r}; it has the keys {excerpt(list(inputs))}."
                )
            if not isinstance(inputs[key], str):
                raise ConfigurationError(f"{key!r} must be a string, but is {excerpt(inputs[key])} in {where}.")
        if isinstance(inputs.get("id"), (list, dict)):
            raise ConfigurationError(f"'id' must be a string or a number, but is {excerpt(inputs['id'])} in {where}.")

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        self.check_inputs(json_dict, "the input")
        texts = [json_dict[key] for key in self.text_keys]
        known = {"id": str(json_dict["id"])} if json_dict.get("id") is not None else {}
        return self._dataset_reader.text_to_instance(*texts, **known)

    def predict_instance(self, instance: Instance) -> JsonDict:
        """The prediction for an instance of the reader, whether it has a label or not."""
        return self.predict_batch_instance([instance])[0]

    def predict_batch_instance(self, instances: List[Instance]) -> List[JsonDict]:
        """The predictions for instances of the reader, in their order, whether they have labels or not."""
        unlabelled = [_without_label(instance) for instance in instances]
        for instance in unlabelled:
            self._dataset_reader.apply_token_indexers(instance)
        outputs = self._model.forward_on_instances(unlabelled)
        # `sanitize` writes the string "None" where JSON has null.
        return [{name: None if value is None else sanitize(value) for name, value in row.items()} for row in outputs]

    def predictions_to_labeled_instances(self, instance: Instance, outputs: Dict[str, Any]) -> List[Instance]:
        """
        For AllenNLP's interpreters, which ask for the gradient of what the model predicts.

        # Returns

        `List[Instance]`
            The one instance, with the predicted label.
        """
        labelled = instance.duplicate()
        labelled.add_field("label", LabelField(outputs["label"], LABEL_NAMESPACE), self._model.vocab)
        return [labelled]

    def get_gradients(self, instances: List[Instance]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """
        For AllenNLP's interpreters: the gradient of the loss with respect to the token vectors.

        AllenNLP's own makes all parameters trainable for it, which an activation cache rightly refuses, and goes back
        through the whole biLM. Here the vectors of a text field embedder are where the gradient ends. (Where AllenNLP
        takes another layer, such as the first one of a transformer, its own serves.)

        # Parameters

        instances : `List[Instance]`
            With labels.

        # Returns

        `Tuple[Dict[str, Any], Dict[str, Any]]`
            `grad_input_1` and so on, float32 `(batch_size, num_tokens, embedding_dim)` each, one for each time that a
            text is embedded, the last time first, as the interpreters expect it: of a pair those of sentence 2 and 1;
            of one that a symmetric `adapted_pair_classifier` embeds in both orders, those of sentence 1, 2, 2 and 1.
            And the readable output.
        """
        embedder = self.get_interpretable_layer()
        if not isinstance(embedder, TextFieldEmbedder):
            return super().get_gradients(instances)
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self._model.vocab)
        vectors: List[torch.Tensor] = []

        def begin_history(module: torch.nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
            vectors.append(output.detach().requires_grad_())
            return vectors[-1]

        # After the hooks of the interpreters, which look at the vectors or scale them.
        handle = embedder.register_forward_hook(begin_history)
        try:
            # The LSTM of cuDNN has a gradient in training mode only.
            with torch.backends.cudnn.flags(enabled=False):
                outputs = self._model(**move_to_device(batch.as_tensor_dict(), self.cuda_device))
        finally:
            handle.remove()
        gradients = torch.autograd.grad(outputs["loss"], vectors)
        named = {f"grad_input_{n}": gradient.cpu().numpy() for n, gradient in enumerate(reversed(gradients), start=1)}
        return named, self._model.make_output_human_readable(outputs)


def _without_label(instance: Instance) -> Instance:
    return Instance({name: field for name, field in instance.fields.items() if name != "label"})
