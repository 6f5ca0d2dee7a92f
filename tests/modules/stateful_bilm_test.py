import torch
from allennlp.common import Params
from allennlp.modules import TokenEmbedder

from elmo_tasks.modules import ElmoEmbedder

TEXT = ["A quiet film with a loud heart .", "Skip it", "Nobody leaves the room before the end ."]


def drift(embedder, character_ids):
    """How far apart a batch is from itself, embedded twice."""
    return (embedder(character_ids) - embedder(character_ids)).abs().max().item()


def test_warm_up_takes_the_drift_from_the_first_batches(files, to_ids):
    character_ids = to_ids([TEXT[-1].split()] * 3)
    cold = drift(ElmoEmbedder(**files, stateful=True).eval(), character_ids)
    # Reading a text again and again brings the states to a fixed point.
    warm = drift(ElmoEmbedder(**files, stateful=True, warm_up_sentences=TEXT + TEXT[-1:] * 60).eval(), character_ids)
    assert cold > 1e-2
    assert warm < 1e-3 * cold


def test_warm_up_reaches_rows_that_no_batch_has_used(files, to_ids):
    embedder = ElmoEmbedder(**files, stateful=True, warm_up_sentences=TEXT).eval()
    one, five = to_ids([TEXT[1].split()]), to_ids([TEXT[1].split()] * 5)
    first = embedder(one)
    later = embedder(five)
    for row in range(1, 5):
        torch.testing.assert_close(later[row], first[0], rtol=0, atol=1e-6)
    assert (later[0] - first[0]).abs().max() > 1e-3


def test_two_embedders_agree_after_the_same_warm_up(files, sentences, to_ids):
    config = {"type": "elmo", **files, "stateful": True, "warm_up_sentences": TEXT}
    first, second = (TokenEmbedder.from_params(Params(dict(config))).eval() for _ in range(2))
    assert torch.equal(first(to_ids(sentences)), second(to_ids(sentences)))
    assert (first(to_ids(sentences)) - ElmoEmbedder(**files).eval()(to_ids(sentences))).abs().max() > 1e-3


def test_weights_from_a_state_dict_reach_the_stateful_bilm(files, sentences, to_ids):
    character_ids = to_ids(sentences)
    embedder = ElmoEmbedder(**files, stateful=True).eval()
    before = embedder(character_ids)
    state = {name: value.clone() for name, value in embedder.state_dict().items()}
    state["bilm.layers.0.bias"] += 0.5
    embedder.load_state_dict(state)
    changed = ElmoEmbedder(**files).eval()
    changed.load_state_dict(state)
    after = embedder(character_ids)
    assert (after - before).abs().max() > 1e-3
    # The first batch starts from zeros, as without states.
    torch.testing.assert_close(after, changed(character_ids), rtol=0, atol=1e-4)
