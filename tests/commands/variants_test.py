import json

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.commands.study import Study
from elmo_tasks.commands.variants import check_has_only, read_variants, variant_config


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "variants.libsonnet"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def test_variants_may_import_overrides_and_compute_names(write, tmp_path):
    (tmp_path / "cpu.libsonnet").write_text("{ 'trainer.cuda_device': -1 }")
    path = write("{ ['rate_%g' % rate]: (import 'cpu.libsonnet') { lr: rate } for rate in [1, 2] }")
    assert read_variants(path) == {
        "rate_1": {"trainer.cuda_device": -1, "lr": 1},
        "rate_2": {"trainer.cuda_device": -1, "lr": 2},
    }


def test_numbers_in_names_are_ordered_by_size(write):
    names = ["b_100%", "a_3%", "a_1%", "b_3%", "a_10%", "2", "a"]
    path = write({name: {} for name in names})
    assert list(read_variants(path)) == ["2", "a", "a_1%", "a_3%", "a_10%", "b_3%", "b_100%"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, r"variants\.libsonnet must be an object with one variant or more, but is \{\}"),
        ([{}], r"must be an object of settings, but is \[\{\}\]"),
        ({"a/b": {}}, "must have names for folders beside 'activations', but one is 'a/b'"),
        ({"..": {}}, r"but one is '\.\.'"),
        ({"activations": {}}, "but one is 'activations'"),
        ({"a": 3}, r"the variant 'a' in .* must be an object of overrides, but is 3"),
    ],
)
def test_what_is_wrong_with_variants_is_said(write, content, message):
    with pytest.raises(ConfigurationError, match=message):
        read_variants(write(content))


def test_overrides_are_those_of_the_option():
    config = {"trainer": {"lr": 1, "patience": 2}}
    assert variant_config(config, "a", {"trainer.lr": 3, "random_seed": 4}) == {
        "trainer": {"lr": 3, "patience": 2},
        "random_seed": 4,
    }
    assert config == {"trainer": {"lr": 1, "patience": 2}}


def test_an_override_without_a_place_names_its_variant():
    with pytest.raises(ConfigurationError, match=r"the variant 'a' must change places .*trianer\.lr"):
        variant_config({"trainer": {"lr": 1}}, "a", {"trianer.lr": 3})


def test_a_folder_with_something_else_is_refused(tmp_path):
    check_has_only(tmp_path / "new", ["a"])
    (tmp_path / "a").mkdir()
    check_has_only(tmp_path, ["a", "b"])
    (tmp_path / "old_variant").mkdir()
    with pytest.raises(ConfigurationError, match="comparison of these variants, but has old_variant"):
        check_has_only(tmp_path, ["a", "b"])


def test_a_variant_that_was_renamed_before_it_learnt_something_is_no_hindrance(tmp_path):
    with Study(tmp_path / "misspelt", {"trainer": {}}, 0, 1).opened():
        check_has_only(tmp_path, ["a"])
    (tmp_path / "misspelt/seed_0").mkdir()
    (tmp_path / "misspelt/seed_0/best.th").touch()
    with pytest.raises(ConfigurationError, match="comparison of these variants, but has misspelt"):
        check_has_only(tmp_path, ["a"])
