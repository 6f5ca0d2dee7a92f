"""The ELMo embedder: exact, stateless unless asked, cached, with a mix that can be set, trained and read."""

import logging
import os
from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders import ElmoTokenEmbedder, TokenEmbedder

from elmo_tasks.bilm import WordOptions
from elmo_tasks.bilm.network import PRECISIONS
from elmo_tasks.common.excerpts import excerpt
from elmo_tasks.common.protocols import InstanceSource
from elmo_tasks.common.version import VERSION
from elmo_tasks.modules.activation_cache import ActivationCache
from elmo_tasks.modules.bilm_record import BILM_PREFIX, RECORD_NAME, BiLmRecord
from elmo_tasks.modules.bilm_runner import BiLmRunner
from elmo_tasks.modules.bilm_source import BiLmSource, build_bilm
from elmo_tasks.modules.layer_mix import LayerMix, ScalarLayerMix
from elmo_tasks.modules.sentence_batch import SentenceBatch, sentences_of
from elmo_tasks.modules.stateful_bilm import StatefulBiLm

logger = logging.getLogger(__name__)


@TokenEmbedder.register("elmo")
class ElmoEmbedder(ElmoTokenEmbedder):
    """
    ELMo vectors of tokens: the layers of a biLM, mixed.

    A sentence has the same vectors in every batch, order and process, with and without cache. A config written for
    AllenNLP's `elmo_token_embedder` runs with only its type changed, up to three things that are meant: states do not
    carry over between batches (`stateful`), `do_layer_norm` normalises each token by itself, and words given in
    `vocab_to_cache` need no ids.

    Registered as a `TokenEmbedder` with name "elmo". In Python, `ElmoEmbedder.from_params(Params({...}))` takes what a
    config holds, and the constructor objects.

    # Parameters

    options_file : `Optional[Union[str, os.PathLike]]`, optional (default = `None`)
        An official options file, path or URL. With nothing that names a biLM, AllenNLP's default: the published
        "original".
    weight_file : `Optional[Union[str, os.PathLike]]`, optional (default = `None`)
        The official hdf5 file that belongs to it.
    do_layer_norm : `bool`, optional (default = `False`)
        Normalise the layers before mixing, each token by itself.
    dropout : `float`, optional (default = `0.5`)
        Dropout of the mixed vectors.
    requires_grad : `bool`, optional (default = `False`)
        Train the biLM too.
    projection_dim : `Optional[int]`, optional (default = `None`)
        Project the mixed vectors to this size.
    vocab_to_cache : `Optional[List[str]]`, optional (default = `None`)
        Taken, so that configs run, and not needed: the character network runs once per distinct word of a batch. The
        words need no ids, and change no result.
    scalar_mix_parameters : `Optional[List[float]]`, optional (default = `None`)
        A fixed mix: one number per layer, before the softmax. `mix` can do more.
    pretrained : `Optional[Union[str, os.PathLike]]`, optional (default = `None`)
        Instead of the two files: the name of a published or bundled biLM, a folder with `options.json` and
        `weights.hdf5`, or the archive or run of a `bilm_language_model`, over characters or words.
    options : `Optional[Dict[str, Any]]`, optional (default = `None`)
        Instead of `options_file`: its content.
    pretrained_file : `Optional[Union[str, os.PathLike]]`, optional (default = `None`)
        The weights that belong to `options`.
    untrained_seed : `Optional[int]`, optional (default = `None`)
        Random weights, as before any training, in place of those of the biLM that the arguments above name: a control
        of the same size, which has read nothing. The seed chooses them, whatever the seed of the run.
    mix : `Optional[Lazy[LayerMix]]`, optional (default = `None`)
        How layers are mixed; `None`: "scalar", trained from equal weights.
    cache : `Optional[ActivationCache]`, optional (default = `None`)
        Keeps the activations of a frozen biLM, so that it runs once per distinct sentence. Training fills it before the
        first epoch.
    stateful : `bool`, optional (default = `False`)
        Let each row of a batch start in the state that the batch before left, bit for bit as AllenNLP's embedder does.
        Vectors then depend on order and batch size.
    warm_up_sentences : `Optional[List[str]]`, optional (default = `None`)
        With `stateful`: sentences, tokens separated by blanks, that are read first, so that the first batches do not
        start from zeros.
    precision : `str`, optional (default = `"float32"`)
        Of the products in the biLM: "float32", or "bfloat16", faster where the processor has units for it. Autocast
        around the embedder changes nothing.
    max_tokens_per_forward : `int`, optional (default = `4096`)
        The biLM runs on so many tokens at once, padding included; larger batches are cut into several. A sentence
        beyond it runs alone.
    save_bilm_weights : `bool`, optional (default = `True`)
        `False` leaves the weights of a frozen biLM out of checkpoints and archives. These then name its source and
        digest, need the source to be loaded, and refuse another one.
    serialization_dir : `Optional[str]`, optional (default = `None`)
        Supplied by AllenNLP: an archive is loaded from itself, and needs none of the files above.

    # Raises

    ConfigurationError
        Where arguments exclude each other, or the biLM cannot be had.

    # Source

    <https://arxiv.org/abs/1802.05365>
    """

    def __init__(
        self,
        options_file: Optional[Union[str, os.PathLike]] = None,
        weight_file: Optional[Union[str, os.PathLike]] = None,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        requires_grad: bool = False,
        projection_dim: Optional[int] = None,
        vocab_to_cache: Optional[List[str]] = None,
        scalar_mix_parameters: Optional[List[float]] = None,
        pretrained: Optional[Union[str, os.PathLike]] = None,
        options: Optional[Dict[str, Any]] = None,
        pretrained_file: Optional[Union[str, os.PathLike]] = None,
        untrained_seed: Optional[int] = None,
        mix: Optional[Lazy[LayerMix]] = None,
        cache: Optional[ActivationCache] = None,
        stateful: bool = False,
        # A string too, to be refused: AllenNLP would make a list of its characters.
        warm_up_sentences: Optional[Union[str, List[str]]] = None,
        precision: str = "float32",
        max_tokens_per_forward: int = 4096,
        save_bilm_weights: bool = True,
        serialization_dir: Optional[str] = None,
    ) -> None:
        # Not the constructor of `ElmoTokenEmbedder`, which would build AllenNLP's biLM.
        TokenEmbedder.__init__(self)
        pretrained, options_file, weight_file, pretrained_file = (
            None if path is None else os.fspath(path)
            for path in (pretrained, options_file, weight_file, pretrained_file)
        )
        source = BiLmSource(pretrained, options_file, weight_file, options, pretrained_file, untrained_seed)
        _check(
            (not isinstance(mix, (Lazy, type(None))), _in_python("mix", "a `Lazy[LayerMix]`", mix)),
            (not isinstance(cache, (ActivationCache, type(None))), _in_python("cache", "an `ActivationCache`", cache)),
            (precision not in PRECISIONS, f"`precision` must be one of {sorted(PRECISIONS)}, but is {precision!r}"),
            (max_tokens_per_forward < 1, f"`max_tokens_per_forward` must be above 0, but is {max_tokens_per_forward}"),
            (
                mix is not None and (do_layer_norm or scalar_mix_parameters is not None),
                "`mix` must say all about the mix; `do_layer_norm` and `scalar_mix_parameters` are its options "
                "`layer_norm` and `initial` with `trainable: false`",
            ),
            (
                cache is not None and requires_grad,
                "`cache` must not be given with `requires_grad`: what it keeps is wrong once the biLM is trained",
            ),
            (
                cache is not None and stateful,
                "`cache` must not be given with `stateful`: a sentence then has other vectors each time",
            ),
            (
                stateful and precision != "float32",
                "`precision` must be float32 with `stateful`, which is for results as AllenNLP's own",
            ),
            (
                requires_grad and precision != "float32",
                "`precision` must be float32 with `requires_grad`: gradients need it",
            ),
            (
                stateful and requires_grad,
                "`requires_grad` must be false with `stateful`; AllenNLP's `elmo_token_embedder` can do both",
            ),
            (
                warm_up_sentences is not None and not stateful,
                "`stateful` must be true with `warm_up_sentences`: without states there is nothing to warm up",
            ),
            (
                isinstance(warm_up_sentences, str),
                f"`warm_up_sentences` must be a list of sentences, but is the string {warm_up_sentences!r}",
            ),
            (
                requires_grad and not save_bilm_weights,
                "`save_bilm_weights` must be true with `requires_grad`: trained weights are nowhere else",
            ),
        )
        self.bilm = build_bilm(source, precision, serialization_dir)
        _check(
            (
                stateful and isinstance(self.bilm.options, WordOptions),
                "`stateful` must be false for a biLM over words: AllenNLP's embedder, which it is to equal, has none",
            )
        )
        self.bilm.requires_grad_(requires_grad)
        self.cache = cache
        self._runner = BiLmRunner(self.bilm, cache, max_tokens_per_forward)
        self._source = source
        self._save_bilm_weights = save_bilm_weights
        self.is_stateful = stateful
        self._warm_up_sentences = [sentence.split() for sentence in warm_up_sentences or []]
        self._stateful_bilm: Optional[StatefulBiLm] = None

        sizes = (self.bilm.options.num_representations, self.bilm.options.bilm_dim)
        if mix is not None:
            self.scalar_mix = mix.construct(num_representations=sizes[0], bilm_dim=sizes[1])
        else:
            self.scalar_mix = ScalarLayerMix(
                *sizes,
                initial=scalar_mix_parameters,
                trainable=scalar_mix_parameters is None,
                layer_norm=do_layer_norm,
            )
        self._dropout = torch.nn.Dropout(dropout)
        self._projection: Optional[torch.nn.Linear] = None  # type: ignore[assignment]
        self.output_dim = self.scalar_mix.get_output_dim()
        if projection_dim:
            self._projection = torch.nn.Linear(self.output_dim, projection_dim)
            self.output_dim = projection_dim
        self._register_state_dict_hook(_leave_out_bilm_weights)

    def forward(self, elmo_tokens: torch.Tensor, word_inputs: Optional[torch.Tensor] = None) -> torch.Tensor:
        """
        # Parameters

        elmo_tokens : `torch.Tensor`
            int64 `(batch_size, num_tokens, 50)` character ids without boundaries, 0 = padding; or with dimensions
            between the first two, for lists of sentences.
        word_inputs : `Optional[torch.Tensor]`, optional (default = `None`)
            Ids that AllenNLP's embedder needs for `vocab_to_cache`. Words are recognised by their characters here.

        # Returns

        `torch.Tensor`
            float32 `(batch_size, num_tokens, output_dim)`, zeros at padding up to the projection; with the same
            dimensions between.
        """
        elmo_tokens = _with_characters(elmo_tokens)
        batch = SentenceBatch(elmo_tokens.flatten(0, -3))
        # Dropout on the padded tensor, so that the same seed drops the same values as with AllenNLP's embedder.
        vectors = self._dropout(batch.pad(self.scalar_mix(self._layers(batch))))
        if self._projection is not None:
            vectors = self._projection(vectors.to(self._projection.weight.dtype))
        return vectors.view(*elmo_tokens.shape[:-1], self.output_dim)

    def layers(self, elmo_tokens: torch.Tensor) -> torch.Tensor:
        """
        The layers before they are mixed: the token vectors, twice side by side, then each layer of the LSTM.

        # Parameters

        elmo_tokens : `torch.Tensor`
            As for `forward`.

        # Returns

        `torch.Tensor`
            float32 `(num_representations, batch_size, num_tokens, bilm_dim)`, zeros at padding.
        """
        elmo_tokens = _with_characters(elmo_tokens)
        batch = SentenceBatch(elmo_tokens.flatten(0, -3))
        layers = torch.stack([batch.pad(layer) for layer in self._layers(batch)])
        return layers.view(layers.size(0), *elmo_tokens.shape[:-1], layers.size(-1))

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            What the mix reports, and `elmo_stateful`, 0 or 1: results of the two do not compare.
        """
        return {**self.scalar_mix.get_metrics(reset), "elmo_stateful": float(self.is_stateful)}

    def prepare_for_training(self, training_instances: InstanceSource, all_instances: InstanceSource) -> None:
        """Fills the cache. See `PreparesForTraining`."""
        if self.cache is not None:
            self._runner.fill_cache(sentence for instance in all_instances() for sentence in sentences_of(instance))

    @property
    def leaves_out_bilm_weights(self) -> bool:
        """Whether a state dict is without the biLM: never where the biLM is trained, its weights are nowhere else."""
        is_frozen = not any(parameter.requires_grad for parameter in self.bilm.parameters())
        return is_frozen and not self._save_bilm_weights

    def _layers(self, batch: SentenceBatch) -> List[torch.Tensor]:
        # Each (num_tokens_of_all_sentences, bilm_dim)
        if self.is_stateful and sum(batch.lengths) > 0:
            return [batch.unpad(layer) for layer in self._bilm_with_states()(batch.character_ids)]
        if self.training:
            self._runner.fills_cache = True
        return self._runner.layers(self._runner.rows(batch))

    def _bilm_with_states(self) -> StatefulBiLm:
        # Made when it is needed: after construction, weights may still come from a state dict, and go to a GPU.
        if self._stateful_bilm is None or self._stateful_bilm.device != next(self.bilm.parameters()).device:
            self._stateful_bilm = StatefulBiLm(self.bilm, self._warm_up_sentences)
        return self._stateful_bilm

    def _save_to_state_dict(self, destination: Dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        record = BiLmRecord(
            options=self.bilm.options.to_dict(),
            source=self._source.names(),
            digest=self._runner.digest() if self.leaves_out_bilm_weights else None,
            stateful=self.is_stateful,
            version=VERSION,
        )
        destination[prefix + RECORD_NAME] = record.to_tensor()

    def _load_from_state_dict(self, state_dict: Dict[str, Any], prefix: str, *others: Any) -> None:
        tensor = state_dict.pop(prefix + RECORD_NAME, None)
        if tensor is not None:
            record = BiLmRecord.from_tensor(tensor)
            if record.stateful != self.is_stateful:
                logger.warning(
                    "The embedder was trained with `stateful` %s, and now has it %s: its vectors are others.",
                    record.stateful,
                    self.is_stateful,
                )
            if record.digest is not None:
                record.check(self._runner.digest())
                # What was left out is at hand already.
                state_dict.update(
                    {prefix + BILM_PREFIX + name: value for name, value in self.bilm.state_dict().items()}
                )
        self._stateful_bilm = None
        super()._load_from_state_dict(state_dict, prefix, *others)


def _with_characters(elmo_tokens: torch.Tensor) -> torch.Tensor:
    if not isinstance(elmo_tokens, torch.Tensor):
        raise ConfigurationError(
            f"`elmo_tokens` must be a tensor of character ids, but is {excerpt(elmo_tokens)}; "
            "`allennlp.modules.elmo.batch_to_ids` makes them of lists of tokens"
        )
    if elmo_tokens.dim() < 3 and (elmo_tokens.dim() < 2 or elmo_tokens.size(-1) > 0):
        raise ConfigurationError(
            "the tensor of an ELMo embedder must have shape (batch_size, num_tokens, 50), but has "
            f"{tuple(elmo_tokens.shape)}; is its indexer one of ELMo characters?"
        )
    # AllenNLP's indexer gives a batch of nothing but empty sentences without a dimension for characters.
    return elmo_tokens.unsqueeze(-1) if elmo_tokens.size(-1) == 0 else elmo_tokens


def _leave_out_bilm_weights(embedder: ElmoEmbedder, state_dict: Dict[str, Any], prefix: str, metadata: Any) -> None:
    if embedder.leaves_out_bilm_weights:
        for name in [name for name in state_dict if name.startswith(prefix + BILM_PREFIX)]:
            del state_dict[name]


def _in_python(name: str, wanted: str, given: Any) -> str:
    return (
        f"`{name}` must be {wanted} in Python, but is {excerpt(given)}; `ElmoEmbedder.from_params(Params({{...}}))` "
        "takes what a config holds"
    )


def _check(*conditions: Tuple[bool, str]) -> None:
    for is_wrong, message in conditions:
        if is_wrong:
            raise ConfigurationError(message)
