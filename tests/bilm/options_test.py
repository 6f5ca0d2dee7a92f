import copy
import json

import pytest

from elmo_tasks.bilm.options import BiLmOptions

# The options of the published "original" model, as its publishers spell them.
OFFICIAL = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 512,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 4096,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "embedding": {"dim": 16},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}


def official_with(dotted_key, value):
    options = copy.deepcopy(OFFICIAL)
    place = options
    *parents, last = dotted_key.split(".")
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return options


def test_published_options_have_the_published_sizes():
    options = BiLmOptions.from_dict(OFFICIAL)
    assert options.num_filters == 2048
    assert options.bilm_dim == 1024
    assert options.num_representations == 3
    assert (options.cell_dim, options.projection_dim, options.cell_clip, options.projection_clip) == (4096, 512, 3, 3)


def test_options_written_are_the_official_ones_again(tmp_path):
    path = str(tmp_path / "options.json")
    options = BiLmOptions.from_dict(OFFICIAL)
    options.to_file(path)
    assert json.loads((tmp_path / "options.json").read_text()) == OFFICIAL
    assert BiLmOptions.from_file(path) == options


def test_training_options_count_one_character_less():
    assert BiLmOptions.from_dict(official_with("char_cnn.n_characters", 261)) == BiLmOptions.from_dict(OFFICIAL)


def test_options_of_training_alone_are_ignored():
    assert BiLmOptions.from_dict({**OFFICIAL, "n_train_tokens": 7, "bidirectional": True}) == BiLmOptions.from_dict(
        OFFICIAL
    )


@pytest.mark.parametrize("key", ["lstm.cell_clip", "lstm.proj_clip"])
def test_no_clip_zero_and_null_all_mean_no_bound(key):
    attribute = {"lstm.cell_clip": "cell_clip", "lstm.proj_clip": "projection_clip"}[key]
    for options in (official_with(key, None), official_with(key, 0), official_with(key, 0.0)):
        assert getattr(BiLmOptions.from_dict(options), attribute) is None
    options = copy.deepcopy(OFFICIAL)
    options["lstm"][key.split(".")[1]] = None
    assert getattr(BiLmOptions.from_dict(options), attribute) is None


def test_no_highway_is_none():
    assert BiLmOptions.from_dict(official_with("char_cnn.n_highway", None)).num_highway_layers == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (official_with("char_cnn", None), "biLMs over a word vocabulary are not supported"),
        (official_with("lstm.use_skip_connections", False), "without residual connections are not supported"),
        (official_with("lstm.use_skip_connections", None), "without residual connections are not supported"),
        ({**OFFICIAL, "bidirectional": False}, "biLMs of one direction are not supported"),
        (official_with("char_cnn.n_characters", 1000), "must be 262 .* but is 1000"),
        (official_with("lstm", None), "`lstm.use_skip_connections`"),
        (official_with("lstm.dim", None), "`lstm.dim` must be among the options, but is missing"),
        (official_with("lstm.dim", "4096"), "`lstm.dim` must be of type int, but is '4096'"),
        (official_with("lstm.n_layers", True), "`lstm.n_layers` must be of type int, but is True"),
        (official_with("lstm.cell_clip", "3"), "`lstm.cell_clip` must be of type int or float, but is '3'"),
        (official_with("char_cnn.filters", [[1, 32, 5]]), r"must hold pairs .* but holds \[1, 32, 5\]"),
        (official_with("char_cnn.filters", []), "`filters` must be pairs"),
        (official_with("char_cnn.activation", "gelu"), "`activation` must be one of .* but is 'gelu'"),
        (official_with("char_cnn.max_characters_per_token", 6), "must be at least 7"),
        (official_with("lstm.cell_clip", -1), "`cell_clip` must be above 0"),
        (official_with("char_cnn.n_highway", -1), "`num_highway_layers` must not be negative"),
        ([], "must be a JSON object"),
    ],
)
def test_impossible_options_are_refused_with_their_name(options, message):
    with pytest.raises(ValueError, match=message):
        BiLmOptions.from_dict(options)


def test_all_impossible_sizes_are_named_at_once():
    options = official_with("lstm.dim", 0)
    options["lstm"]["projection_dim"] = -1
    with pytest.raises(ValueError, match=r"`cell_dim` .* is 0; `projection_dim` .* is -1"):
        BiLmOptions.from_dict(options)


@pytest.mark.parametrize("text", ["<html>moved</html>", json.dumps(official_with("lstm.dim", None))])
def test_errors_name_the_file(tmp_path, text):
    path = tmp_path / "options.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"options\.json"):
        BiLmOptions.from_file(str(path))
