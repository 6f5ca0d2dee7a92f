import pytest

from elmo_tasks.common.config_changes import config_changes

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
