import json
import logging
import multiprocessing
from collections import Counter

import pytest
import torch.distributed as dist
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, DatasetReader, Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer
from allennlp.data.tokenizers import WhitespaceTokenizer

from elmo_tasks.dataset_readers import PLACEHOLDER_TOKEN, MrpcReader, MrReader


@pytest.fixture
def write(tmp_path):
    def write_lines(name, *lines):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(tmp_path / name)

    return write_lines


def words(instance, field="tokens"):
    return [token.text for token in instance[field].tokens]


def ids(instances):
    return [instance["metadata"]["id"] for instance in instances]


def test_character_ids_are_the_default_index_and_case_changes_them(write):
    path = write("a.txt", "Fine_!_1", "fine_!_1")
    instances = list(MrReader().read(path))
    batch = Batch(instances)
    batch.index_instances(Vocabulary.from_instances(instances))
    character_ids = batch.as_tensor_dict()["tokens"]["elmo"]["elmo_tokens"]
    assert character_ids.shape == (2, 1, 50)
    assert character_ids[0, 0, 1] == ord("F") + 1
    assert (character_ids[0] != character_ids[1]).sum() == 1


def test_text_is_lower_cased_on_request_only():
    assert words(MrReader().text_to_instance("An ODD Film")) == ["An", "ODD", "Film"]
    assert words(MrReader(lowercase_elmo=True).text_to_instance("An ODD Film")) == ["an", "odd", "film"]


def test_indexers_are_applied_apart_from_building():
    reader = MrReader()
    instance = reader.text_to_instance("a film")
    with pytest.raises(ValueError, match="token_indexers have not been set"):
        instance["tokens"].token_indexers  # noqa: B018
    reader.apply_token_indexers(instance)
    assert isinstance(instance["tokens"].token_indexers["elmo"], ELMoTokenCharactersIndexer)


def test_other_tokenizers_and_indexers_come_from_a_config(write):
    params = {
        "type": "mr",
        "tokenizer": {"type": "whitespace"},
        "token_indexers": {"words": {"type": "single_id"}},
        "label_names": {"0": "negative", "1": "positive"},
    }
    reader = DatasetReader.from_params(Params(params))
    assert isinstance(reader._tokenizer, WhitespaceTokenizer)
    (instance,) = reader.read(write("a.txt", "a film_!_1"))
    assert list(instance["tokens"].token_indexers) == ["words"]
    assert instance["label"].label == "positive"


@pytest.mark.parametrize("name", ["mr", "mrpc"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 0}, "`max_tokens`"),
        ({"dev_share": 1.0}, "`dev_share`"),
        ({"encoding": "no-such"}, "`encoding`"),
        ({"max_tokns": 3}, "Extra parameters.*max_tokns"),
    ],
)
def test_wrong_option_is_an_error_that_names_it(name, options, message):
    with pytest.raises(ConfigurationError, match=message):
        DatasetReader.from_params(Params({"type": name, **options}))


def test_long_texts_are_cut_with_one_counted_warning_per_file(write, caplog):
    long = " ".join(["word"] * 10_000)
    first, second = write("a.txt", f"{long}_!_1", "short_!_0", f"{long}_!_0"), write("b.txt", f"{long}_!_1")
    instances = list(MrReader(max_tokens=400).read([first, second]))
    assert [len(words(instance)) for instance in instances] == [400, 1, 400, 400]
    assert all(len(instance["metadata"]["tokens"]) == len(words(instance)) for instance in instances)
    assert caplog.messages == [
        f"{first}: cut 2 text(s) to 400 tokens (`max_tokens`)",
        f"{second}: cut 1 text(s) to 400 tokens (`max_tokens`)",
    ]


def test_long_line_of_one_word_is_not_cut(write, caplog):
    (instance,) = MrReader(max_tokens=3).read(write("a.txt", "abcdefgh_!_1"))
    assert words(instance) == ["abcdefgh"]
    assert caplog.messages == []


def test_warning_is_not_repeated_when_a_file_is_read_again(write, caplog):
    path = write("a.txt", *[f"row {index}_!_{index % 2}" for index in range(20)], "")
    reader = MrReader()
    for part in ("train", "dev", "train"):
        assert list(reader.read(f"{path}#{part}"))
    assert caplog.messages == [f"{path}: skipped 1 blank line"]


def test_part_without_rows_is_an_error(write):
    with pytest.raises(ConfigurationError, match=r"the part `dev` of .*a\.txt holds no rows"):
        list(MrReader().read(write("a.txt", "a_!_1", "b_!_0") + "#dev"))


def test_errors_come_before_the_first_instance(write):
    with pytest.raises(ConfigurationError, match="line 3"):
        next(iter(MrReader().read(write("a.txt", "a_!_1", "b_!_0", "c"))))


def test_folder_is_an_error_where_a_file_is_needed(tmp_path):
    with pytest.raises(ConfigurationError, match="must be a file, but is a folder"):
        list(MrpcReader().read(tmp_path))


def test_files_of_the_same_name_cannot_be_read_together(tmp_path):
    paths = [tmp_path / folder / "a.txt" for folder in "xy"]
    for path in paths:
        path.parent.mkdir()
        path.write_text("a_!_1\n")
    with pytest.raises(ConfigurationError, match="must differ in name"):
        list(MrReader().read(paths))


@pytest.mark.parametrize(("names", "row_id"), [(("a.pos", "b.pos"), "pos:1"), (("a.txt", "a.tsv"), "a:1")])
def test_files_whose_row_ids_would_be_the_same_cannot_be_read_together(names, row_id, write):
    with pytest.raises(ConfigurationError, match=rf"must differ in name, .* but 2 of .* have the row {row_id}$"):
        list(MrReader().read([write(name, "sentence\tlabel", "a\t1") for name in names]))


def test_blank_text_becomes_the_placeholder():
    assert words(MrReader().text_to_instance(" ")) == [PLACEHOLDER_TOKEN]
    pair = MrpcReader().text_to_instance("", "Fine.")
    assert pair["metadata"]["sentence1_tokens"] == words(pair, "sentence1") == [PLACEHOLDER_TOKEN]
    assert words(pair, "sentence2") == ["Fine", "."]


def test_default_readers_need_no_model_of_spacy_and_no_data_of_nltk(monkeypatch):
    def unwanted(*args, **kwargs):
        raise AssertionError("nothing is to be looked for on this machine")

    for function in ("spacy.load", "nltk.data.find", "nltk.data.load", "nltk.download"):
        monkeypatch.setattr(function, unwanted)
    sentence = DatasetReader.from_params(Params({"type": "mr"})).text_to_instance("it 's fine .")
    assert words(sentence) == ["it", "'s", "fine", "."]
    pair = DatasetReader.from_params(Params({"type": "mrpc"})).text_to_instance("It's fine.", "Mr. Lee left.")
    assert words(pair, "sentence1") == ["It", "'s", "fine", "."]
    assert words(pair, "sentence2") == ["Mr.", "Lee", "left", "."]


@pytest.mark.parametrize("text", [["good", "film"], None, 5])
def test_text_that_is_no_string_is_an_error(text):
    with pytest.raises(ConfigurationError, match="the text must be a string, but is"):
        MrReader().text_to_instance(text)
    with pytest.raises(ConfigurationError, match="the text must be a string, but is"):
        MrpcReader().text_to_instance("Fine.", text)


def test_every_row_of_a_file_is_kept_when_predicting(write, caplog):
    path = write("a.tsv", "sentence\tlabel", "a film\t1", "", "\t0", "no label field", "b film\t0")
    reader = MrReader()
    reader.keep_every_row = True
    instances = list(reader.read(path))
    assert [instance["metadata"]["line"] for instance in instances] == [2, 3, 4, 5, 6]
    assert ids(instances) == ["a:2", "a:3", "a:4", "a:5", "a:6"]
    blank = [PLACEHOLDER_TOKEN]
    assert [words(instance) for instance in instances] == [["a", "film"], blank, blank, blank, ["b", "film"]]
    # Two rows have no label, so none comes along: any of them can share a batch.
    assert not any("label" in instance.fields for instance in instances)
    (message,) = caplog.messages
    assert "1 malformed row as blank" in message
    assert "line 5: must have 2 tab-separated fields" in message


def test_labels_come_along_when_predicting_if_every_row_has_one(write):
    reader = MrReader()
    reader.keep_every_row = True
    assert [instance["label"].label for instance in reader.read(write("a.txt", "a_!_1", "_!_0"))] == ["1", "0"]
    unknown = list(reader.read(write("b.txt", "a_!_1", "b_!_7")))
    assert not any("label" in instance.fields for instance in unknown)


def test_plain_text_can_be_predicted(write):
    reader = MrReader()
    reader.keep_every_row = True
    instances = list(reader.read(write("plain.txt", "a film", "another film")))
    assert [words(instance) for instance in instances] == [["a", "film"], ["another", "film"]]


def test_part_has_the_same_members_when_predicting(write):
    path = write("a.txt", "", *[f"row {index}_!_{index % 2}" for index in range(40)]) + "#test"
    reader = MrReader(fold=2)
    members = ids(reader.read(path))
    reader.keep_every_row = True
    assert ids(reader.read(path)) == members
    assert len(members) == 4


def test_max_instances_limits_what_is_read(write):
    path = write("a.txt", *[f"row {index}_!_1" for index in range(9)])
    assert ids(MrReader(max_instances=2).read(path)) == ["a:1", "a:2"]


@pytest.mark.parametrize("reader", [MrReader, MrpcReader])
def test_max_instances_below_1_is_an_error(reader):
    with pytest.raises(ConfigurationError, match="`max_instances` must be at least 1, but is 0"):
        reader(max_instances=0)


def test_max_instances_takes_of_a_part_rows_of_each_class(tmp_path):
    """As `rt-polarity` is distributed, the first 5,331 rows are of one class."""
    for name in ("pos", "neg"):
        (tmp_path / f"rt-polarity.{name}").write_text("".join(f"{name} {number}\n" for number in range(50)))
    few, all_rows = MrReader(fold=1, max_instances=4), MrReader(fold=1)
    for part in ("train", "dev", "test"):
        chosen = ids(few.read(f"{tmp_path}#{part}"))
        assert Counter(row.split(":")[0] for row in chosen) == {"pos": 2, "neg": 2}
        in_order = ids(all_rows.read(f"{tmp_path}#{part}"))
        assert chosen == [row for row in in_order if row in chosen]
    assert ids(MrReader(fold=1, max_instances=999).read(f"{tmp_path}#dev")) == ids(all_rows.read(f"{tmp_path}#dev"))


def _load_share(rank, path, store, options, results):
    """One process of a distributed training, whose loader has two workers."""
    dist.init_process_group("gloo", init_method=f"file://{store}", world_size=2, rank=rank)
    loader = MultiProcessDataLoader(MrReader(**options), path, batch_size=2, num_workers=2, quiet=True)
    results.put((rank, ids(loader.iter_instances())))
    dist.barrier()
    dist.destroy_process_group()


def load_in_two_processes(path, store, **options):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=_load_share, args=(rank, path, store, options, results)) for rank in range(2)]
    for process in processes:
        process.start()
    shares = dict(results.get(timeout=60) for _ in processes)
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == 0
    return shares


def test_two_processes_with_two_workers_each_read_every_row_once(write, tmp_path):
    path = write("a.txt", *[f"row {index}_!_{index % 2}" for index in range(11)], "")
    log = logging.FileHandler(tmp_path / "log", delay=True)
    logger = logging.getLogger("elmo_tasks")
    logger.addHandler(log)
    try:
        shares = load_in_two_processes(path, tmp_path / "store", max_tokens=1)
    finally:
        logger.removeHandler(log)
    assert Counter(shares[0] + shares[1]) == Counter(f"a:{line}" for line in range(1, 12))
    assert {len(share) for share in shares.values()} == {5, 6}
    assert (tmp_path / "log").read_text().splitlines() == [
        f"{path}: skipped 1 blank line",
        f"{path}: cut 11 text(s) to 1 tokens (`max_tokens`)",
    ]


def test_folds_are_the_same_in_two_processes_with_two_workers_each(write, tmp_path):
    path = write("a.txt", *[f"row {index}_!_{index % 2}" for index in range(40)]) + "#test"
    shares = load_in_two_processes(path, tmp_path / "store", fold=3)
    assert sorted(shares[0] + shares[1]) == sorted(ids(MrReader(fold=3).read(path)))


def test_shards_share_max_instances(write, tmp_path):
    path = write("a.txt", *[f"row {index}_!_1" for index in range(11)])
    shares = load_in_two_processes(path, tmp_path / "store", max_instances=5)
    assert len(set(shares[0] + shares[1])) == 5
    assert len(set(ids(MrReader(max_instances=5).read(path + "#train")))) == 5
    shares = load_in_two_processes(path + "#train", tmp_path / "store of the part", max_instances=5)
    assert sorted(shares[0] + shares[1]) == sorted(ids(MrReader(max_instances=5).read(path + "#train")))


def test_json_with_a_lone_surrogate_is_read(write):
    path = write(
        "a.jsonl", json.dumps({"sentence": "odd \ud800 end", "label": 1}), *['{"sentence": "b", "label": 0}'] * 9
    )
    assert len(list(MrReader().read(path))) == 10
    assert len(list(MrReader().read(path + "#train"))) == 9
    # A vocabulary with this word can be saved.
    assert words(next(iter(MrReader().read(path)))) == ["odd", "\ufffd", "end"]


@pytest.fixture
def hundred_rows(write):
    """60 of one class, 40 of the other; `#train` holds 90 of them, 54 and 36."""
    return write("a.txt", *(f"row {number}_!_{int(number < 60)}" for number in range(100)))


def test_a_share_of_the_training_part_is_stratified_and_leaves_other_parts_alone(hundred_rows):
    whole, reader = MrReader(), MrReader(train_share=0.1)
    kept = list(reader.read(f"{hundred_rows}#train"))
    # A tenth of 90 rows, of 54 and of 36: 5.4 and 3.6.
    assert Counter(instance["label"].label for instance in kept) == {"1": 5, "0": 4}
    assert set(ids(kept)) < set(ids(whole.read(f"{hundred_rows}#train")))
    assert ids(reader.read(f"{hundred_rows}#dev")) == ids(whole.read(f"{hundred_rows}#dev"))
    assert len(list(reader.read(hundred_rows))) == 100


def test_shares_of_the_training_part_are_nested_and_belong_to_the_seed(hundred_rows):
    def rows(share, **options):
        return set(ids(MrReader(train_share=share, **options).read(f"{hundred_rows}#train")))

    assert rows(0.03) < rows(0.1) < rows(0.3) < rows(1.0)
    # In the whole training part of another seed are other rows, too: those of both are compared.
    shared = rows(1.0) & rows(1.0, split_seed=1)
    assert rows(0.3) & shared != rows(0.3, split_seed=1) & shared


def test_each_fold_draws_its_own_share_and_is_tested_whole(hundred_rows):
    def rows(fold, part, share):
        return set(ids(MrReader(train_share=share, fold=fold).read(f"{hundred_rows}#{part}")))

    for fold in (0, 1):
        # 10 rows are tested, 9 of the other 90 are `#dev`, 81 are left: 16.2.
        assert len(rows(fold, "train", 0.2)) == 16
        assert rows(fold, "test", 0.2) == rows(fold, "test", 1.0)
        assert rows(fold, "dev", 0.2) == rows(fold, "dev", 1.0)
    in_both = rows(0, "train", 1.0) & rows(1, "train", 1.0)
    assert rows(0, "train", 0.2) & in_both != rows(1, "train", 0.2) & in_both


def test_pairs_have_shares_too(write):
    lines = [f"{number % 2}\tone {number}\tother {number}" for number in range(50)]
    path = write("pairs.tsv", "label\tsentence1\tsentence2", *lines)
    # 45 rows are no dev part; a fifth of them is 9.
    assert len(list(MrpcReader(train_share=0.2).read(f"{path}#train"))) == 9


@pytest.mark.parametrize("share", [0, -0.1, 1.5])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ConfigurationError, match=f"`train_share` must be above 0 and at most 1, but is {share}"):
        MrReader(train_share=share)


def test_a_share_that_leaves_no_row_of_a_class_is_refused(hundred_rows):
    message = r"`train_share` must leave rows of every class, but 0\.01 of the 90 rows of the part `train` of .*a\.txt"
    with pytest.raises(ConfigurationError, match=f"{message} leaves none of 0"):
        list(MrReader(train_share=0.01).read(f"{hundred_rows}#train"))
