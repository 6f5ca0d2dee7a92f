import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.dataset_readers.labels import LabelNames


@pytest.mark.parametrize("label", [1, "1", "1 ", " 1\t", 1.0, "positive", " positive "])
def test_raw_label_and_name_are_the_same_class(label):
    assert LabelNames({"0": "negative", "1": "positive"})(label) == "positive"


def test_labels_of_the_corpora_are_their_own_names_by_default():
    assert [LabelNames()(label) for label in (0, "1")] == ["0", "1"]


@pytest.mark.parametrize("label", [None, "", "  "])
def test_no_label_has_no_name(label):
    assert LabelNames()(label) is None


@pytest.mark.parametrize("label", ["good", 2, "1.0", -1, 0.5, float("nan"), True])
def test_unknown_label_is_an_error_that_lists_the_known_ones(label):
    with pytest.raises(ConfigurationError, match="one of '0', '1', 'negative', 'positive'"):
        LabelNames({"0": "negative", "1": "positive"})(label)


def test_several_raw_labels_may_share_a_name():
    names = LabelNames({"1": "low", "2": "low", "3": "high"})
    assert [names(raw) for raw in (1, 2, 3)] == ["low", "low", "high"]


def test_name_that_is_the_raw_label_of_another_class_is_an_error():
    with pytest.raises(ConfigurationError, match="`label_names`"):
        LabelNames({"0": "1", "1": "0"})


@pytest.mark.parametrize("label", [["1"], {}, ["1"] * 10_000])
def test_a_label_that_is_neither_text_nor_number_is_an_error(label):
    with pytest.raises(ConfigurationError, match="the label must be one of '0', '1', but is") as error:
        LabelNames()(label)
    assert len(str(error.value)) < 300
