import pytest

from elmo_tasks.common.config_changes import config_changes, flat_config

OLD = {"trainer": {"num_epochs": 3, "optimizer": {"lr": 0.5}, "callbacks": ["a"]}, "model": "tiny"}


def changed(**trainer):
    return {**OLD, "trainer": {**OLD["trainer"], **trainer}}


@pytest.mark.parametrize(
    ("new", "changes"),
    [
        (OLD, []),
        (changed(num_epochs=3.0), []),
        (changed(num_epochs=5), ["`trainer.num_epochs` was 3, but is 5"]),
        (changed(patience=2), ["`trainer.patience` was not set, but is 2"]),
        (changed(checkpointer=None), ["`trainer.checkpointer` was not set, but is None"]),
        ({"trainer": OLD["trainer"]}, ["`model` was 'tiny', but is not set"]),
        (
            changed(optimizer="adam", callbacks=["a", "b"]),
            [
                "`trainer.callbacks` was ['a'], but is ['a', 'b']",
                "`trainer.optimizer` was not set, but is 'adam'",
                "`trainer.optimizer.lr` was 0.5, but is not set",
            ],
        ),
    ],
)
def test_each_key_that_differs_is_named_with_both_values(new, changes):
    assert config_changes(OLD, new) == changes


def test_an_empty_object_is_a_setting():
    """A trainer with `moving_average: {}` takes one."""
    assert config_changes({"trainer": {}}, {"trainer": {"moving_average": {}}}) == [
        "`trainer.moving_average` was not set, but is {}"
    ]
    assert config_changes({}, {"trainer": {}}) == ["`trainer` was not set, but is {}"]
    assert config_changes({"a": {"b": {}}}, {"a": {"b": {}}}) == []
    assert flat_config({"a": {"b": {}, "c": [{"d": 1}]}, "e": None}) == {"a.b": {}, "a.c": [{"d": 1}], "e": None}
