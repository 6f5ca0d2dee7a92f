import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

from elmo_tasks.dataset_readers import MrpcReader

HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"


@pytest.fixture
def write(tmp_path):
    def write_text(name, text, encoding="utf-8"):
        (tmp_path / name).write_text(text, encoding=encoding, newline="")
        return tmp_path / name

    return write_text


@pytest.fixture
def forty_pairs(write):
    """Pair n has the ids 1000 + n and 2000 + n; every fourth is no paraphrase."""
    rows = [f"{int(n % 4 > 0)}\t{1000 + n}\t{2000 + n}\tText {n}.\tWords {n}." for n in range(40)]
    return write("msr_paraphrase_train.txt", "\n".join([HEADER, *rows]) + "\n", "utf-8-sig")


def texts(instance):
    return [" ".join(token.text for token in instance[name].tokens) for name in ("sentence1", "sentence2")]


def ids(instances):
    return [instance["metadata"]["id"] for instance in instances]


def label(instance):
    return instance["label"].label if "label" in instance.fields else None


def test_quotes_swallow_neither_rows_nor_fields(write):
    path = write(
        "msr_paraphrase_train.txt",
        f'{HEADER}\r\n1\t11\t12\tHe left.\t"He has left, she said.\r\n'
        '0\t21\t22\t"One" and "two".\tAnd three."\r\n1\t31\t32\tYes.\tNo.\r\n',
        "utf-8-sig",
    )
    first, second, third = DatasetReader.from_params(Params({"type": "mrpc"})).read(path)
    assert texts(first) == ["He left .", '" He has left , she said .']
    assert texts(second) == ['" One " and " two " .', 'And three . "']
    assert [label(instance) for instance in (first, second, third)] == ["1", "0", "1"]
    assert first["metadata"].metadata == {
        "id": "11-12",
        "line": 2,
        "file": str(path),
        "sentence1_tokens": ["He", "left", "."],
        "sentence2_tokens": ['"', "He", "has", "left", ",", "she", "said", "."],
    }


def test_words_and_clitics_are_separated_and_case_is_kept(write):
    path = write("a.tsv", f"{HEADER}\n1\t1\t2\tBonds don't sell.\tIt's Ann's U.S. bond.\n")
    (instance,) = MrpcReader().read(path)
    assert texts(instance) == ["Bonds do n't sell .", "It 's Ann 's U.S. bond ."]


def test_glue_test_file_has_no_label(write):
    path = write("test.tsv", "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t5\t6\tA.\tB.\n")
    (instance,) = MrpcReader().read(path)
    assert (texts(instance), label(instance), instance["metadata"]["id"]) == (["A .", "B ."], None, "5-6")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dev.tsv", "label\tsentence2\tsentence1\tidx\n1\tB.\tA.\t0\n"),
        ("dev.jsonl", '{"sentence1": "A.", "sentence2": "B.", "label": 1, "idx": 0}\n'),
        ("dev.json", '{"sentence1": "A.", "sentence2": "B.", "label": "yes", "idx": 0}\n'),
    ],
)
def test_columns_are_found_by_name(write, name, text):
    (instance,) = MrpcReader(label_names={"0": "no", "1": "yes"}).read(write(name, text))
    assert (texts(instance), label(instance)) == (["A .", "B ."], "yes")
    assert instance["metadata"]["id"] == ("dev:2" if name == "dev.tsv" else "dev:1")


def test_columns_can_have_other_names(write):
    path = write("a.jsonl", '{"left": "A.", "right": "B.", "same": 0, "id1": 8, "id2": 9}\n')
    reader = MrpcReader(sentence1_column="left", sentence2_column="right", label_column="same")
    (instance,) = reader.read(path)
    assert (texts(instance), label(instance), ids([instance])) == (["A .", "B ."], "0", ["8-9"])


@pytest.mark.parametrize("page", ["<!DOCTYPE html>\n<html>\n", '<?xml version="1.0"?>\n<Error>\n', "404: Not Found\n"])
def test_web_page_in_place_of_the_corpus_is_an_error_with_the_expected_header(write, page):
    path = write("msr_paraphrase_train.txt", page)
    with pytest.raises(ConfigurationError) as error:
        list(MrpcReader().read(path))
    message = str(error.value)
    assert message.startswith(f"{path}, line 1: must be a header of tab-separated columns")
    assert "`#1 String`" in message
    assert "`#2 String`" in message
    assert repr(page.partition("\n")[0])[:8] in message


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1\t1\t2\tA.", "must have 5 tab-separated fields like the header, but has 4"),
        ("1\t1\t2\tA.\tB.\tC.", "but has 6"),
        ("1\t1\t2\tA.\t ", "`sentence2` must not be blank"),
        ("maybe\t1\t2\tA.\tB.", "label must be one of '0', '1', but is 'maybe'"),
    ],
)
def test_malformed_row_is_an_error_with_file_and_line(write, row, message):
    path = write("train.tsv", f"{HEADER}\n1\t1\t2\tA.\tB.\n{row}\n")
    with pytest.raises(ConfigurationError, match=rf"train\.tsv, line 3: .*{message}"):
        list(MrpcReader().read(path))


def test_every_row_is_kept_when_predicting(write):
    reader = MrpcReader()
    reader.keep_every_row = True
    path = write("test.tsv", f"{HEADER}\n1\t1\t2\tA.\tB.\n1\t3\t4\t\tD.\n\n1\t5\t6\n")
    instances = list(reader.read(path))
    assert ids(instances) == ["1-2", "3-4", "test:4", "test:5"]
    assert texts(instances[1]) == ["<blank>", "D ."]
    assert texts(instances[2]) == texts(instances[3]) == ["<blank>", "<blank>"]
    assert {label(instance) for instance in instances} == {None}


def test_dev_ids_choose_the_dev_part_in_either_order(forty_pairs, write):
    # The second is written the other way round.
    dev_ids = write("mrpc_dev_ids.tsv", "1003\t2003\n2007\t1007\n\n1039\t2039\n")
    reader = MrpcReader(dev_ids_file=str(dev_ids))
    train, dev = (ids(reader.read(f"{forty_pairs}#{part}")) for part in ("train", "dev"))
    assert dev == ["1003-2003", "1007-2007", "1039-2039"]
    assert len(train) == 37
    assert not set(train) & set(dev)


def test_official_dev_ids_leave_3668_pairs_of_4076_to_train_on(write):
    rows = [f"{int(n % 3 > 0)}\t{10000 + n}\t{20000 + n}\tA {n}.\tB {n}." for n in range(4076)]
    path = write("msr_paraphrase_train.txt", "\n".join([HEADER, *rows]) + "\n", "utf-8-sig")
    dev_ids = write("mrpc_dev_ids.tsv", "".join(f"{10000 + n}\t{20000 + n}\n" for n in range(3, 4076, 9)[:408]))
    reader = MrpcReader(dev_ids_file=str(dev_ids))
    train, dev = (ids(reader.read(f"{path}#{part}")) for part in ("train", "dev"))
    assert (len(train), len(dev)) == (3668, 408)
    assert not set(train) & set(dev)


def test_dev_pair_that_is_not_in_the_file_is_an_error(forty_pairs, write):
    dev_ids = write("mrpc_dev_ids.tsv", "1003\t2003\n1003\t2004\n")
    with pytest.raises(ConfigurationError, match=r"dev_ids\.tsv, line 2: must name a pair of .* no 1003-2004"):
        list(MrpcReader(dev_ids_file=str(dev_ids)).read(f"{forty_pairs}#train"))


def test_line_of_dev_ids_must_be_a_pair(forty_pairs, write):
    dev_ids = write("mrpc_dev_ids.tsv", "1003\n")
    with pytest.raises(ConfigurationError, match="line 1: must be two text ids, but is '1003'"):
        list(MrpcReader(dev_ids_file=str(dev_ids)).read(f"{forty_pairs}#dev"))


def test_dev_ids_are_not_needed_to_read_a_whole_file(forty_pairs):
    assert len(list(MrpcReader(dev_ids_file="gone.tsv").read(forty_pairs))) == 40


@pytest.mark.parametrize("options", [{"dev_share": 0.2}, {"split_seed": 1}])
def test_dev_ids_and_a_share_exclude_each_other(options):
    params = Params({"type": "mrpc", "dev_ids_file": "ids.tsv", **options})
    with pytest.raises(ConfigurationError, match="must be left out"):
        DatasetReader.from_params(params)


def test_dev_share_is_stratified_and_disjoint_from_train(forty_pairs):
    reader = MrpcReader(dev_share=0.2)
    train, dev = (list(reader.read(f"{forty_pairs}#{part}")) for part in ("train", "dev"))
    assert (len(train), len(dev)) == (32, 8)
    assert sum(label(instance) == "0" for instance in dev) == 2
    assert not set(ids(train)) & set(ids(dev))
    assert ids(MrpcReader(dev_share=0.2, split_seed=1).read(f"{forty_pairs}#dev")) != ids(dev)


def test_official_test_part_is_a_file_of_its_own(forty_pairs):
    with pytest.raises(ConfigurationError, match=r"msr_paraphrase_test\.txt"):
        list(MrpcReader().read(f"{forty_pairs}#test"))


def test_ids_that_are_null_are_none_and_others_than_text_and_numbers_an_error(write):
    path = write("a.jsonl", '{"sentence1": "A.", "sentence2": "B.", "label": 1, "id1": null, "id2": 2}\n')
    (instance,) = MrpcReader().read(path)
    assert instance["metadata"]["id"] == "a:1"
    path = write("b.jsonl", '{"sentence1": "A.", "sentence2": "B.", "label": 1, "id1": [1], "id2": 2}\n')
    with pytest.raises(ConfigurationError, match=r"b\.jsonl, line 1: the ids of a pair must be .*but one is \[1\]"):
        list(MrpcReader().read(path))
