"""The language model that a biLM is pretrained as."""

import contextlib
import itertools
import logging
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, cast

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.data import Vocabulary
from allennlp.data.fields import TextField
from allennlp.models import Model

from elmo_tasks.bilm.character_ids import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, encode_token
from elmo_tasks.bilm.lstm import LstmState
from elmo_tasks.bilm.network import PRECISIONS
from elmo_tasks.bilm.products import without_autocast
from elmo_tasks.bilm.word_table import UNKNOWN_WORD
from elmo_tasks.common.protocols import InstanceSource
from elmo_tasks.dataset_readers.vocabulary import NAMESPACE
from elmo_tasks.models.perplexity import Perplexity
from elmo_tasks.models.pretrained_language_model import start_from
from elmo_tasks.modules.bilm_network import BiLmNetwork
from elmo_tasks.modules.softmax import SampledSoftmax, Softmax

logger = logging.getLogger(__name__)

# Seeds of one step, one for each process.
SEEDS_PER_STEP = 1024
# Sentences whose words tell whether the vocabulary is sorted by frequency.
SENTENCES_TO_LOOK_AT = 2000
SAMPLED_BY_DEFAULT: Lazy[Softmax] = Lazy(SampledSoftmax)


@Model.register("bilm_language_model")
class BiLmLanguageModel(Model):
    """
    Two language models over one text, which share the token vectors: forward, each word is predicted from the
    words before it, backward, from those behind it. Takes the batches of the data loader `bilm_text`.

    Registered as a `Model` with name "bilm_language_model".

    # Parameters

    vocab : `Vocabulary`
        With the namespace "words" of a `bilm_text` vocabulary.
    network : `Lazy[BiLmNetwork]`
        The biLM: "characters" (what ELMo is) or "words".
    softmax : `Lazy[Softmax]`, optional (default = sampled)
        "sampled", "full" or "adaptive". Evaluation is always exact.
    share_softmax : `bool`, optional (default = `True`)
        Whether both directions predict with the same output layer.
    dropout : `float`, optional (default = `0.1`)
        Of the input of each LSTM layer and of the vectors that words are predicted from, as in bilm-tf.
    seed : `int`, optional (default = `13`)
        Of dropout and samples. Each step draws from a generator of its own, so that a resumed run draws what
        an uninterrupted one would.
    pretrained_file : `Optional[str]`, optional (default = `None`)
        To go on from: an archive or the folder of a run of this model, the name of a published biLM, or a folder
        with `options.json` and `weights.hdf5`. The softmax comes along where the words are the same, else it starts
        anew; a line of the log says which.
    precision : `str`, optional (default = `"float32"`)
        "bfloat16" rounds the factors and results of the LSTMs' products, those of the gradient too; weights, memory
        cells and all else stay float32. A third faster on a processor with bfloat16 instructions, slower on others.
        The trainer's `use_amp` changes nothing here: a biLM's products are rounded by this option alone.

    # Raises

    ConfigurationError
        Where the precision is unknown, or there is nothing to go on from, or something of other sizes.
    """

    default_predictor = "text_generator"

    def __init__(
        self,
        vocab: Vocabulary,
        network: Lazy[BiLmNetwork],
        softmax: Lazy[Softmax] = SAMPLED_BY_DEFAULT,
        share_softmax: bool = True,
        dropout: float = 0.1,
        seed: int = 13,
        pretrained_file: Optional[str] = None,
        precision: str = "float32",
    ) -> None:
        super().__init__(vocab)
        num_words = vocab.get_vocab_size(NAMESPACE)
        self.network = network.construct(num_words=num_words)
        self.softmaxes = torch.nn.ModuleList(
            softmax.construct(num_words=num_words, input_dim=self.network.projection_dim)
            for _ in range(1 if share_softmax else 2)
        )
        if precision not in PRECISIONS:
            raise ConfigurationError(f"`precision` must be one of {sorted(PRECISIONS)}, but is {precision!r}")
        self._dtype = PRECISIONS[precision]
        self._dropout = torch.nn.Dropout(dropout)
        self._seed = seed
        self._num_steps = 0
        # Of each layer after the last batch, where the next batch continues it: of this process, and of all.
        self._states: Optional[List[LstmState]] = None
        self._states_of_all_processes: Optional[List[LstmState]] = None
        self._perplexity = Perplexity()
        if pretrained_file is not None:
            start_from(self, pretrained_file)

    def forward(
        self,
        character_ids: torch.Tensor,
        word_ids: torch.Tensor,
        forward_inputs: torch.Tensor,
        forward_targets: torch.Tensor,
        backward_inputs: torch.Tensor,
        backward_targets: torch.Tensor,
        mask: torch.Tensor,
        carries: bool,
        continues: bool,
    ) -> Dict[str, torch.Tensor]:
        """
        # Parameters

        character_ids, word_ids, forward_inputs, forward_targets, backward_inputs, backward_targets, mask, carries,
        continues :
            A batch of the data loader `bilm_text`, which says what they hold.

        # Returns

        `Dict[str, torch.Tensor]`
            `loss`: the mean over both directions of the mean negative log likelihood in nats.

        # Raises

        ConfigurationError
            Where a batch continues one that had another number of rows.
        """
        if self.training:
            self._perplexity.start_clock()
        with without_autocast(mask.device), self._random_numbers_of_this_step(mask.device):
            # (num_distinct_words, projection_dim)
            token_vectors = self.network.token_vectors(character_ids, word_ids)
            # Both directions, and steps before rows, as the layers want it: (2, num_steps * batch_size)
            inputs = _by_step(forward_inputs, backward_inputs)
            targets = _by_step(forward_targets, backward_targets)
            states = self._states_before(mask.size(0), mask.device) if continues else None
            layers, states = self.run_layers(token_vectors[inputs], (mask.size(0), mask.size(1)), states)
            self._keep(states if carries else None)
            # (num_predictions,)
            (valid,) = mask.t().reshape(-1).nonzero(as_tuple=True)
            losses = self._losses(self._dropout(layers[-1][:, valid]), targets[:, valid])
        forward_loss, backward_loss = losses.tolist()
        self._perplexity.add(forward_loss, backward_loss, len(valid))
        return {"loss": losses.mean() / max(len(valid), 1)}

    def run_layers(
        self, token_vectors: torch.Tensor, shape: Tuple[int, int], states: Optional[List[LstmState]] = None
    ) -> Tuple[List[torch.Tensor], List[LstmState]]:
        """
        # Parameters

        token_vectors : `torch.Tensor`
            float `(2, num_steps * batch_size, projection_dim)`, of both directions in the order in which they read, the
            first step of all rows first.
        shape : `Tuple[int, int]`
            `(batch_size, num_steps)`
        states : `Optional[List[LstmState]]`, optional (default = `None`)
            Of each layer; `None`: zeros.

        # Returns

        `Tuple[List[torch.Tensor], List[LstmState]]`
            The outputs of each layer, of the shape of `token_vectors`, and the states after the last step.
        """
        batch_size, num_steps = shape
        outputs: List[torch.Tensor] = []
        new_states: List[LstmState] = []
        inputs = token_vectors
        for number, layer in enumerate(self.network.lstm_layers):
            inputs = self._dropout(inputs)
            layer_outputs, state = layer(
                inputs, [batch_size] * num_steps, states[number] if states else None, dtype=self._dtype
            )
            # Residual connections begin at the second layer.
            inputs = layer_outputs + inputs if number > 0 else layer_outputs
            outputs.append(inputs)
            new_states.append(state.detach())
        return outputs, new_states

    @property
    def words(self) -> List[str]:
        """All words of the vocabulary, by their ids."""
        words = self.vocab.get_index_to_token_vocabulary(NAMESPACE)
        return [words[index] for index in range(len(words))]

    def layer_activations(self, sentences: Sequence[Sequence[str]]) -> List[torch.Tensor]:
        """
        What ELMo would mix, for networks over words too.

        # Parameters

        sentences : `Sequence[Sequence[str]]`
            The words of each, without boundaries.

        # Returns

        `List[torch.Tensor]`
            The token vectors, twice side by side, and each layer's outputs, the forward direction's first:
            `(num_sentences, num_tokens, 2 * projection_dim)`, zeros at padding.

        # Raises

        ConfigurationError
            Where a sentence is a string: each of its characters would become a word.
        """
        for sentence in sentences:
            if isinstance(sentence, str):
                raise ConfigurationError(
                    f"a sentence must be a list of words, but is the string {sentence!r}; split it first"
                )
        num_steps = max((len(sentence) for sentence in sentences), default=0) + 1
        # The words in both orders, after the boundary where they begin.
        orders: List[List[List[str]]] = [[], []]
        for sentence in sentences:
            for order, words in zip(
                orders, ([BEGIN_SENTENCE_TOKEN, *sentence], [END_SENTENCE_TOKEN, *reversed(sentence)])
            ):
                order.append(words + [END_SENTENCE_TOKEN] * (num_steps - len(words)))
        # (2, num_steps, num_sentences, projection_dim)
        both = torch.stack([torch.stack([self._token_vectors(words) for words in order], dim=1) for order in orders])
        layers, _ = self.run_layers(both.flatten(1, 2), (len(sentences), num_steps))
        activations = []
        for layer in [both.flatten(1, 2), *layers]:
            forward, backward = layer.view_as(both).transpose(1, 2)
            rows = [
                torch.cat([forward[row, 1 : len(sentence) + 1], backward[row, 1 : len(sentence) + 1].flip(0)], dim=1)
                for row, sentence in enumerate(sentences)
            ]
            activations.append(torch.nn.utils.rnn.pad_sequence(rows, batch_first=True))
        return activations

    def predict_next(
        self, words: List[str], states: Optional[List[LstmState]] = None
    ) -> Tuple[torch.Tensor, List[LstmState]]:
        """
        # Parameters

        words : `List[str]`
            What comes next in the text; "<S>" begins a line.
        states : `Optional[List[LstmState]]`, optional (default = `None`)
            After the words before these; `None`: there were none.

        # Returns

        `Tuple[torch.Tensor, List[LstmState]]`
            Float `(num_words,)`, the log probability that the forward direction gives each word of the vocabulary as
            the next one, in nats, and the states to go on with.
        """
        # The layers run both directions: the other one reads along, and is not asked. (2, num_words, projection_dim)
        vectors = self._token_vectors(words).expand(2, -1, -1)
        layers, states = self.run_layers(vectors, (1, len(words)), states)
        softmax: Any = self.softmaxes[0]
        return softmax.log_probabilities(layers[-1][0, -1:])[0], states

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """Forward, backward and mean perplexity, and while training, tokens per second: see `Perplexity`."""
        return self._perplexity.get(reset)

    def prepare_for_training(self, training_instances: InstanceSource, all_instances: InstanceSource) -> None:
        """
        Warns where samples are drawn by the place of a word in the vocabulary, but frequent words do not come first.

        # Parameters

        training_instances, all_instances : `Callable[[], Iterator[Instance]]`
            As in `PreparesForTraining`; the first sentences are looked at.
        """
        if not any(isinstance(softmax, SampledSoftmax) and softmax.samples_in_training for softmax in self.softmaxes):
            return
        ids = [
            self._word_id(str(token))
            for instance in itertools.islice(training_instances(), SENTENCES_TO_LOOK_AT)
            for token in cast(TextField, instance["tokens"])
        ]
        num_words = self.vocab.get_vocab_size(NAMESPACE)
        num_frequent = sum(1 for index in ids if index < num_words / 10)
        if 2 * num_frequent < len(ids):
            logger.warning(
                "A sampled softmax must have a vocabulary by falling frequency, but the first tenth of this one covers "
                "only %.0f %% of the text; sort it, or use the softmax `full`",
                100 * num_frequent / len(ids),
            )

    def get_extra_state(self) -> Dict[str, Any]:
        """What a resumed run needs besides parameters: the number of steps, and the carried states of all processes."""
        states = self._states_of_all_processes
        return {"num_steps": self._num_steps, "states": None if states is None else [tuple(state) for state in states]}

    def set_extra_state(self, state: Dict[str, Any]) -> None:
        """The reverse of `get_extra_state`."""
        self._num_steps = state["num_steps"]
        self._states_of_all_processes = self._states = None
        if state["states"] is not None:
            rank, num_processes = _process()
            self._states_of_all_processes = [LstmState(*tensors) for tensors in state["states"]]
            self._states = [
                LstmState(*(tensor.chunk(num_processes, dim=1)[rank] for tensor in state_of_all))
                for state_of_all in self._states_of_all_processes
            ]

    def _token_vectors(self, words: Sequence[str]) -> torch.Tensor:
        device = next(self.parameters()).device
        character_ids = torch.tensor([encode_token(word) for word in words], device=device)
        word_ids = torch.tensor([self._word_id(word) for word in words], device=device)
        # (num_words, projection_dim)
        return self.network.token_vectors(character_ids, word_ids)

    def _word_id(self, word: str) -> int:
        words = self.vocab.get_token_to_index_vocabulary(NAMESPACE)
        return words.get(word, words[UNKNOWN_WORD])

    def _losses(self, vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The summed negative log likelihood of each direction, `(2,)`."""
        if len(self.softmaxes) == 1:
            # One draw of samples and one gradient of the table for both.
            losses = self.softmaxes[0](vectors.flatten(0, 1), targets.flatten())
            return losses.view(2, -1).sum(dim=1)
        return torch.stack([softmax(v, t).sum() for softmax, v, t in zip(self.softmaxes, vectors, targets)])

    def _states_before(self, batch_size: int, device: torch.device) -> List[LstmState]:
        known = 0 if self._states is None else self._states[0].hidden.size(1)
        if self._states is None or known != batch_size:
            raise ConfigurationError(
                f"a batch that continues the one before must have as many rows, but has {batch_size} after {known}; "
                "a resumed run must keep its batch size and number of processes"
            )
        return [LstmState(*(tensor.to(device) for tensor in state)) for state in self._states]

    def _keep(self, states: Optional[List[LstmState]]) -> None:
        self._states = states
        # A run goes on from the states of its training; those of a validation are of no checkpoint.
        self._states_of_all_processes = states if self.training else None
        if self._states_of_all_processes is not None and states is not None and is_distributed():
            # Only the primary process writes checkpoints, and asks no other then: so each step tells it.
            self._states_of_all_processes = [LstmState(*map(_of_all_processes, state)) for state in states]

    @contextlib.contextmanager
    def _random_numbers_of_this_step(self, device: torch.device) -> Iterator[None]:
        if not self.training:
            yield
            return
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed((self._seed + self._num_steps) * SEEDS_PER_STEP + _process()[0])
            yield
        self._num_steps += 1


def _by_step(forward: torch.Tensor, backward: torch.Tensor) -> torch.Tensor:
    """Two of `(batch_size, num_steps)` to `(2, num_steps * batch_size)`, the first step of all rows first."""
    return torch.stack([forward.t().reshape(-1), backward.t().reshape(-1)])


def _process() -> Tuple[int, int]:
    """The rank of this process and the number of processes."""
    if not is_distributed():
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def _of_all_processes(tensor: torch.Tensor) -> torch.Tensor:
    """`(2, batch_size, …)` of each process to `(2, num_processes * batch_size, …)` on all of them."""
    parts = [torch.empty_like(tensor) for _ in range(_process()[1])]
    torch.distributed.all_gather(parts, tensor.contiguous())
    return torch.cat(parts, dim=1)
