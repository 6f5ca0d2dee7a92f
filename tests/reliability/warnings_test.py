"""The option `filterwarnings` in pyproject.toml."""

import warnings

import pytest


@pytest.mark.parametrize("module", ["elmo_tasks", "elmo_tasks.bilm.lstm"])
@pytest.mark.parametrize("category", [UserWarning, DeprecationWarning, FutureWarning, RuntimeWarning])
def test_a_warning_that_this_package_gives_or_causes_is_an_error_in_the_tests(module, category):
    with pytest.raises(category, match="of this kind"):
        warnings.warn_explicit("of this kind", category, "module.py", 1, module=module)
