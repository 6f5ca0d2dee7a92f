import pytest

from elmo_tasks.commands.report_statistics import calibration, confusion_matrix


def test_confusion_matrix_has_a_row_for_each_true_label():
    # Counted by hand.
    pairs = [
        ("yes", "yes"),
        ("yes", "no"),
        ("no", "no"),
        ("yes", "no"),
        ("no", "maybe"),
        ("yes", "yes"),
        ("yes", "yes"),
    ]
    assert confusion_matrix(pairs, ["maybe", "no", "yes"]) == [[0, 0, 0], [1, 1, 0], [0, 2, 3]]


def test_expected_calibration_error_is_the_distance_averaged_over_rows():
    # Four bins: (0, 0.25] none; (0.25, 0.5] 0.4 wrong; (0.5, 0.75] 0.6 right, 0.7 wrong; (0.75, 1] 0.9 right.
    result = calibration([0.4, 0.6, 0.7, 0.9], [False, True, False, True], num_bins=4)
    assert [one.num_rows for one in result.bins] == [0, 1, 2, 1]
    assert [one.accuracy for one in result.bins] == [0, 0, 0.5, 1]
    assert [one.mean_confidence for one in result.bins] == pytest.approx([0, 0.4, 0.65, 0.9])
    # (0.4 * 1 + 0.15 * 2 + 0.1 * 1) / 4
    assert result.expected_error == pytest.approx(0.2)


def test_a_bin_holds_its_upper_end_and_not_its_lower():
    result = calibration([0.25, 0.5, 1.0, 0.0], [True] * 4, num_bins=4)
    assert [(one.lower, one.upper, one.num_rows) for one in result.bins] == [
        (0, 0.25, 2),
        (0.25, 0.5, 1),
        (0.5, 0.75, 0),
        (0.75, 1, 1),
    ]


def test_a_model_that_is_as_right_as_it_says_has_no_error():
    assert calibration([0.75] * 4, [True, True, True, False]).expected_error == pytest.approx(0.0)


def test_confidences_are_put_into_fifteen_bins():
    assert len(calibration([0.9], [True]).bins) == 15
