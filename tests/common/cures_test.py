"""What the modules of cures have in common."""

import inspect
import sys

import pytest
from allennlp.common import Params

from elmo_tasks.common import compatibility, faults, interruptions, mistakes


@pytest.fixture(params=[compatibility, faults, interruptions, mistakes], ids=lambda module: module.__name__)
def module(request):
    return request.param


def functions_of(module):
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__
    }


def replaced_functions():
    """All that was replaced in AllenNLP, by its place."""
    modules = [module for name, module in sys.modules.items() if name.startswith("allennlp.")]
    classes = {value for module in modules for value in vars(module).values() if inspect.isclass(value)}
    return {
        (owner, name): value
        for owner in [*modules, *classes]
        for name, value in vars(owner).items()
        if "cured_by_elmo_tasks" in getattr(value, "__dict__", ())
    }


def test_cures_may_be_applied_again_and_in_any_order(module):
    before = replaced_functions()
    assert Params.to_file in before.values()
    for cure in [*reversed(module.CURES), *module.CURES]:
        cure()
    assert replaced_functions() == before


def test_every_cure_of_the_module_is_in_the_list_and_says_what_it_is_for(module):
    public = {name for name in functions_of(module) if not name.startswith("_")}
    assert {cure.__name__ for cure in module.CURES} == public - {"apply"}
    assert all(len(cure.__doc__.strip().splitlines()) >= 3 for cure in module.CURES)
