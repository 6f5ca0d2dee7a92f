import subprocess
import sys
from collections import Counter

import pytest

from elmo_tasks.dataset_readers import splits
from elmo_tasks.dataset_readers.splits import dev_share_parts, fold_parts, nested_share

LABELS = ["1"] * 37 + ["0"] * 28
TEXTS = [f"sentence number {index}" for index in range(len(LABELS))]


def folds_of(texts=TEXTS, labels=LABELS, num_folds=10, seed=0):
    return [fold_parts(texts, labels, fold, num_folds, dev_share=0.1, seed=seed) for fold in range(num_folds)]


def test_test_parts_are_disjoint_and_cover_every_row():
    tested = Counter(index for parts in folds_of() for index, part in enumerate(parts) if part == "test")
    assert tested == Counter(range(len(TEXTS)))


@pytest.mark.parametrize("num_folds", [2, 3, 10, 65])
def test_folds_differ_by_at_most_one_row_in_size_and_in_each_class(num_folds):
    for of_class in ("0", "1", None):
        sizes = [
            sum(part == "test" and of_class in (label, None) for part, label in zip(parts, LABELS))
            for parts in folds_of(num_folds=num_folds)
        ]
        assert max(sizes) - min(sizes) <= 1


def test_dev_is_a_stratified_share_of_what_is_not_tested():
    labels = ["1"] * 200 + ["0"] * 100
    texts = [f"row {index}" for index in range(300)]
    for parts in folds_of(texts, labels):
        # 270 rows are not tested: 180 of one class, 90 of the other.
        assert Counter(zip(labels, parts)) == {
            ("1", "test"): 20, ("1", "dev"): 18, ("1", "train"): 162,
            ("0", "test"): 10, ("0", "dev"): 9, ("0", "train"): 81,
        }  # fmt: skip


def test_dev_share_is_exact_in_all_and_within_a_row_in_each_class():
    labels = ["1"] * 2753 + ["0"] * 1323
    parts = dev_share_parts([str(index) for index in range(4076)], labels, dev_share=0.1, seed=0)
    assert Counter(parts) == {"train": 3668, "dev": 408}
    assert abs(sum(part == "dev" for part in parts[:2753]) - 275.3) < 1


def test_members_do_not_depend_on_the_order_of_the_rows():
    parts = dict(zip(TEXTS, folds_of()[3]))
    assert dict(zip(TEXTS[::-1], folds_of(TEXTS[::-1], LABELS[::-1])[3])) == parts


def test_another_seed_gives_other_folds_and_another_dev_part():
    assert folds_of(seed=1)[0] != folds_of(seed=0)[0]
    assert dev_share_parts(TEXTS, LABELS, 0.2, seed=1) != dev_share_parts(TEXTS, LABELS, 0.2, seed=0)


def test_equal_texts_share_a_fold():
    texts, labels = TEXTS + TEXTS, LABELS + LABELS
    folds = [0] * len(texts)
    for number, parts in enumerate(folds_of(texts, labels, num_folds=5)):
        folds = [number if part == "test" else fold for fold, part in zip(folds, parts)]
    separated = sum(folds[index] != folds[index + len(TEXTS)] for index in range(len(TEXTS)))
    # Only at the four borders between the folds of each class can a pair be torn.
    assert separated <= 8


def test_unlabelled_rows_are_split_too():
    assert Counter(dev_share_parts(TEXTS[:50], [None] * 50, 0.1, seed=0)) == {"train": 45, "dev": 5}


PRINT_MEMBERS = f"""
import hashlib, runpy
splits = runpy.run_path({splits.__file__!r})
texts = ["sentence number %d \\u00e9\\u2026" % index for index in range(100)]
labels = [str(index % 3 % 2) for index in range(100)]
parts = [splits["fold_parts"](texts, labels, fold, 10, 0.1, 7) for fold in range(10)]
print(hashlib.md5(repr(parts).encode()).hexdigest(), end="")
"""


def test_parts_are_the_same_in_every_process_and_version_of_python():
    # Computed on Python 3.8 to 3.13. If it changes, results are no longer comparable with earlier ones.
    printed = subprocess.check_output([sys.executable, "-I", "-c", PRINT_MEMBERS], text=True)
    assert printed == "b5e7b1bc24eba46ddbfc3ece64a356da"


def test_a_share_is_stratified_and_exact():
    # 10 % of 65 rows, of 37 and 28: six rows. Places (rank + 0.5) / size of the one class are 0.0135, 0.0405, 0.0676,
    # 0.0946, …, of the other 0.0179, 0.0536, 0.0893, …: in order one, other, one, other, one, other.
    kept = nested_share(TEXTS, LABELS, 0.1, "0 train")
    assert Counter(LABELS[index] for index in kept) == {"1": 3, "0": 3}
    # 40 %: 26 rows, 37 and 28 times 0.4 are 14.8 and 11.2.
    kept = nested_share(TEXTS, LABELS, 0.4, "0 train")
    assert Counter(LABELS[index] for index in kept) == {"1": 15, "0": 11}
    assert kept == sorted(set(kept))


def test_a_smaller_share_is_a_part_of_a_larger_one():
    labels = [str(index % 7 % 3) for index in range(200)]
    texts = [f"row {index}" for index in range(200)]
    shares = [set(nested_share(texts, labels, percent / 100, "salt")) for percent in range(1, 101)]
    assert [len(share) for share in shares] == [2 * percent for percent in range(1, 101)]
    assert all(smaller < larger for smaller, larger in zip(shares, shares[1:]))


def test_a_share_does_not_depend_on_the_order_of_the_rows_but_on_the_salt():
    kept = {TEXTS[index] for index in nested_share(TEXTS, LABELS, 0.3, "a")}
    assert {TEXTS[::-1][index] for index in nested_share(TEXTS[::-1], LABELS[::-1], 0.3, "a")} == kept
    assert {TEXTS[index] for index in nested_share(TEXTS, LABELS, 0.3, "b")} != kept
