"""What a sweep chooses between: the parameters of a search space, and the overrides that a choice amounts to."""

import inspect
import itertools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

from allennlp.common import Params, Registrable
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import with_overrides

from elmo_tasks.commands.study_config import DATA_PATHS, Config
from elmo_tasks.common.config_checks import check_config

if TYPE_CHECKING:
    from optuna import Trial

Value = Union[None, bool, int, float, str]
Overrides = Dict[str, Any]

# Trials that differed in these could not be compared, or would look at the test part.
FIXED = (*DATA_PATHS, "evaluate_on_test")


class SearchParameter(Registrable, ABC):
    """
    One thing that a sweep chooses. In a search space it stands under its name, which for all but "overrides" is what
    it changes: a key as `-o` takes it, dotted or not.
    """

    @abstractmethod
    def suggest(self, name: str, trial: "Trial") -> Value:
        """
        # Returns

        `Union[None, bool, int, float, str]`
            What the sampler of the trial chooses.
        """

    def overrides(self, name: str, value: Value) -> Overrides:
        """
        # Returns

        `Dict[str, Any]`
            The changes to the config, as `-o` takes them, that a chosen value stands for.
        """
        return {name: value}

    @abstractmethod
    def examples(self) -> List[Value]:
        """
        # Returns

        `List[Union[None, bool, int, float, str]]`
            Values enough that whatever is wrong with one is wrong with one of these.
        """


@SearchParameter.register("float")
class FloatParameter(SearchParameter):
    """
    A number between two bounds, which it may be.

    Registered as a `SearchParameter` with name "float".

    # Parameters

    low, high : `float`
        The bounds.
    log : `bool`, optional (default = `False`)
        Choose evenly between the logarithms of the bounds, as suits learning rates.
    step : `float`, optional (default = `None`)
        Only `low`, `low + step` and so on. Not together with `log`.
    """

    def __init__(self, low: float, high: float, log: bool = False, step: Optional[float] = None) -> None:
        _check_bounds(float, low, high, log, step)
        self.low, self.high, self.log, self.step = float(low), float(high), log, step

    def suggest(self, name: str, trial: "Trial") -> Value:
        """See `SearchParameter`."""
        return trial.suggest_float(name, self.low, self.high, log=self.log, step=self.step)

    def examples(self) -> List[Value]:
        """See `SearchParameter`."""
        return [self.low]


@SearchParameter.register("int")
class IntParameter(SearchParameter):
    """
    A whole number between two bounds, which it may be.

    Registered as a `SearchParameter` with name "int".

    # Parameters

    low, high : `int`
        The bounds.
    log : `bool`, optional (default = `False`)
        Choose evenly between the logarithms of the bounds.
    step : `int`, optional (default = `None`)
        Only `low`, `low + step` and so on. Not together with `log`.
    """

    def __init__(self, low: int, high: int, log: bool = False, step: Optional[int] = None) -> None:
        _check_bounds(int, low, high, log, step)
        self.low, self.high, self.log, self.step = low, high, log, step

    def suggest(self, name: str, trial: "Trial") -> Value:
        """See `SearchParameter`."""
        return trial.suggest_int(name, self.low, self.high, log=self.log, step=self.step or 1)

    def examples(self) -> List[Value]:
        """See `SearchParameter`."""
        return [self.low]


@SearchParameter.register("categorical")
class CategoricalParameter(SearchParameter):
    """
    One of several values.

    Registered as a `SearchParameter` with name "categorical".

    # Parameters

    choices : `Union[List, Dict[str, Any]]`
        Numbers, strings, booleans or null in a list; or anything, such as whole mixes or encoders, each under a name
        by which tables and plots call it.
    """

    def __init__(self, choices: Union[List[Any], Dict[str, Any]]) -> None:
        _check_has_choices(choices, (list, dict))
        if isinstance(choices, list) and any(isinstance(choice, (list, dict)) for choice in choices):
            raise ConfigurationError(f"objects and lists in `choices` must have names, as in {{name: …}}: {choices}")
        self.choices = choices

    def suggest(self, name: str, trial: "Trial") -> Value:
        """See `SearchParameter`."""
        return trial.suggest_categorical(name, self.examples())

    def overrides(self, name: str, value: Value) -> Overrides:
        """See `SearchParameter`."""
        return {name: self.choices[str(value)] if isinstance(self.choices, dict) else value}

    def examples(self) -> List[Value]:
        """See `SearchParameter`."""
        return list(self.choices)


@SearchParameter.register("overrides")
class OverridesParameter(SearchParameter):
    """
    One of several sets of overrides, for what only makes sense together, such as an encoder and a pooling of its size.

    Registered as a `SearchParameter` with name "overrides".

    # Parameters

    choices : `Dict[str, Dict[str, Any]]`
        The sets, each under a name by which tables and plots call it. `{}` leaves the config as it is.
    """

    def __init__(self, choices: Dict[str, Dict[str, Any]]) -> None:
        _check_has_choices(choices, (dict,))
        if not all(isinstance(overrides, dict) for overrides in choices.values()):
            raise ConfigurationError(f"each of `choices` must be an object of overrides, but they are {choices!r}")
        self.choices = choices

    def suggest(self, name: str, trial: "Trial") -> Value:
        """See `SearchParameter`."""
        return trial.suggest_categorical(name, list(self.choices))

    def overrides(self, name: str, value: Value) -> Overrides:
        """See `SearchParameter`."""
        return self.choices[str(value)]

    def examples(self) -> List[Value]:
        """See `SearchParameter`."""
        return list(self.choices)


class SearchSpace:
    """
    # Parameters

    description : `Dict[str, Any]`
        The parameters by their names, each as in a config: its `type` and options.

    # Raises

    `ConfigurationError`
        A description is wrong: the error names the parameter.
    """

    def __init__(self, description: Config) -> None:
        if not isinstance(description, dict) or not description:
            raise ConfigurationError(f"a search space must be an object with a parameter or more, but is {description}")
        self.description = description
        self.parameters = {name: _parameter(name, options) for name, options in description.items()}

    @classmethod
    def from_file(cls, path: str) -> "SearchSpace":
        """From a file of json(net), which may read environment variables as a config may."""
        return cls(Params.from_file(path).as_dict(quiet=True))

    def suggest(self, trial: "Trial") -> Dict[str, Value]:
        """
        # Returns

        `Dict[str, Union[None, bool, int, float, str]]`
            A value for each parameter, which the trial notes as its own.
        """
        return {name: parameter.suggest(name, trial) for name, parameter in self.parameters.items()}

    def overrides(self, values: Dict[str, Value]) -> Overrides:
        """
        # Parameters

        values : `Dict[str, Union[None, bool, int, float, str]]`
            One for each parameter, as `suggest` gives them.

        # Returns

        `Dict[str, Any]`
            The changes to the config that they stand for, as `-o` takes them.
        """
        overrides: Overrides = {}
        for name, parameter in self.parameters.items():
            overrides.update(parameter.overrides(name, values[name]))
        return overrides

    def check_fits(self, config: Config) -> None:
        """
        # Raises

        `ConfigurationError`
            A key is no place in the config, or not to be changed by a sweep, or two parameters change the same place,
            or a choice makes a config that `check_config` refuses.
        """
        examples = self._examples()
        for name, choices in examples.items():
            for overrides in choices:
                _check_applies(name, overrides, config)
        places = {name: {key for overrides in choices for key in overrides} for name, choices in examples.items()}
        for one, other in itertools.combinations(places, 2):
            for pair in itertools.product(places[one], places[other]):
                outer, inner = sorted(pair)
                if _is_within(inner, outer):
                    raise ConfigurationError(
                        f"each parameter of a search space must change places of its own, but `{one}` and `{other}` "
                        f"both change `{inner}`"
                    )
        for name, choices in examples.items():
            # What a parameter changes may be an option of what another one chooses.
            others = {key: value for other in examples if other != name for key, value in examples[other][0].items()}
            for overrides in choices:
                check_config(with_overrides(config, {**others, **overrides}))

    def check_leaves_room(self, overrides: Overrides) -> None:
        """
        # Parameters

        overrides : `Dict[str, Any]`
            Those that the config of the sweep was made with. Whoever trains with the best settings gives both in one
            object, where AllenNLP takes no key that is a part of another.

        # Raises

        `ConfigurationError`
            A key is a part of what the search space changes, or the other way round.
        """
        changed = sorted({key for choices in self._examples().values() for choice in choices for key in choice})
        for given, key in itertools.product(overrides, changed):
            if given == key:  # the best setting replaces it
                continue
            must = "`--overrides` must leave room for the best settings, but set"
            if _is_within(key, given):
                raise ConfigurationError(
                    f"{must} `{given}` whole, of which the search space changes `{key}`; give each of its parts a key "
                    f"of its own, as `{key}` is one"
                )
            if _is_within(given, key):
                raise ConfigurationError(
                    f"{must} `{given}`, and the search space changes `{key}` whole; leave it to the choices there"
                )

    def _examples(self) -> Dict[str, List[Overrides]]:
        """For each parameter, the changes that its examples stand for."""
        return {
            name: [parameter.overrides(name, value) for value in parameter.examples()]
            for name, parameter in self.parameters.items()
        }


def _is_within(inner: str, outer: str) -> bool:
    return f"{inner}.".startswith(f"{outer}.")


def _parameter(name: str, description: Any) -> SearchParameter:
    if not isinstance(description, dict) or description.get("type") not in SearchParameter.list_available():
        raise ConfigurationError(
            f"`{name}` of the search space must be an object with a `type`, one of "
            f"{', '.join(SearchParameter.list_available())}, but is {description!r}"
        )
    options = {key: value for key, value in description.items() if key != "type"}
    # Not by `from_params`, which would log each option on the console.
    parameter_class = SearchParameter.by_name(description["type"])
    known = inspect.signature(parameter_class).parameters
    required = [option for option, parameter in known.items() if parameter.default is parameter.empty]
    if not set(required) <= set(options) <= set(known):
        raise ConfigurationError(
            f"`{name}` of the search space must have the options {', '.join(required)}, and of type "
            f"{description['type']!r} may have {', '.join(known)}, but has {', '.join(options) or 'none'}"
        )
    try:
        return parameter_class(**options)
    except ConfigurationError as error:
        raise ConfigurationError(f"`{name}` of the search space: {error.message}") from error


def _check_applies(name: str, overrides: Overrides, config: Config) -> None:
    for key in overrides:
        first = key.partition(".")[0]
        if first in FIXED:
            raise ConfigurationError(f"a search space must leave `{first}` as it is, but `{name}` changes `{key}`")
        if first not in config:
            raise ConfigurationError(
                f"`{name}` of the search space must begin with a key of the config, but there is no `{first}` in it: "
                f"{', '.join(sorted(config))}"
            )
    try:
        with_overrides(config, overrides)
    except ValueError as error:
        raise ConfigurationError(
            f"`{name}` of the search space must change a place of the config that is there, up to its last part: "
            f"{error}"
        ) from error


def _check_bounds(kind: type, low: Any, high: Any, log: bool, step: Any) -> None:
    for option, value in (("low", low), ("high", high), ("step", step)):
        is_number = isinstance(value, (int, kind)) and not isinstance(value, bool)
        if not is_number and not (option == "step" and value is None):
            raise ConfigurationError(f"`{option}` must be of type {kind.__name__}, but is {value!r}")
    if not low <= high:
        raise ConfigurationError(f"`low` must be at most `high`, but they are {low} and {high}")
    if log and not low > 0:
        raise ConfigurationError(f"`low` must be above 0 with `log`, but is {low}")
    if log and step is not None:
        raise ConfigurationError(f"`step` must not come with `log`, but is {step}")
    if step is not None and not step > 0:
        raise ConfigurationError(f"`step` must be above 0, but is {step}")


def _check_has_choices(choices: Any, kinds: Tuple[type, ...]) -> None:
    if not isinstance(choices, kinds) or not choices:
        raise ConfigurationError(f"`choices` must hold one or more, but is {choices!r}")
