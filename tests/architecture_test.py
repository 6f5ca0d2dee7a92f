"""The house keeps its plan: what is where, what is registered, and how a registered class must be written."""

import ast
import contextlib
import inspect
import json
import subprocess
import sys
import typing
from pathlib import Path

import pytest
import torch
from allennlp.commands import ArgumentParserWithDefaults, Subcommand  # also all that AllenNLP itself registers
from allennlp.common.registrable import Registrable

import elmo_tasks  # noqa: F401  (registers everything)

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "elmo_tasks"

# Everything that a config or the command line can name.
REGISTERED = {
    "BiLmNetwork": {"characters", "words"},
    "Checkpointer": {"atomic"},
    "DataLoader": {"bilm_text"},
    "DatasetReader": {"ag_news", "bilm_text", "mr", "mrpc"},
    "Evaluator": {"prediction_rows"},
    "LayerMix": {"scalar", "side_by_side", "single_layer", "token_dependent"},
    "Model": {
        "adapted_pair_classifier",
        "adapted_sentence_classifier",
        "bilm_language_model",
        "elmo_pair_classifier",
        "elmo_sentence_classifier",
    },
    "Predictor": {"elmo_pair", "elmo_sentence", "text_generator"},
    "SearchParameter": {"categorical", "float", "int", "overrides"},
    "Seq2SeqEncoder": {"bypass"},
    "Seq2VecEncoder": {"max_pooling", "self_attentive"},
    "Serializer": {"prediction_rows"},
    "Softmax": {"adaptive", "full", "sampled"},
    "Subcommand": {
        "check-bilm",
        "compare",
        "cross-validate",
        "elmo",
        "export-bilm",
        "predict-bulk",
        "report",
        "results",
        "scalar-mix",
        "sweep",
    },
    "TokenEmbedder": {"elmo"},
    "TokenIndexer": {"elmo_character_arrays"},
    "Tokenizer": {"ascii_whitespace", "treebank"},
    "TrainerCallback": {"export_bilm", "machine_record", "preflight", "resumption", "start_token_vectors"},
    "Vocabulary": {"bilm_text", "bilm_words_file"},
}


def registered():
    """(base class, name, class, constructor) of everything that this package registered."""
    for base, entries in Registrable._registry.items():
        for name, (registered_class, constructor) in entries.items():
            if registered_class.__module__.split(".")[0] == "elmo_tasks":
                yield base, name, registered_class, constructor or "__init__"


def names_of(entries):
    names = {}
    for base, name, *_ in entries:
        names.setdefault(base.__name__, set()).add(name)
    return names


def each_registered_class():
    return pytest.mark.parametrize(
        ("base", "name", "registered_class", "constructor"),
        [pytest.param(*entry, id=f"{entry[0].__name__}-{entry[1]}") for entry in registered()],
    )


def test_every_module_has_its_test():
    missing = [
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*.py")
        if path.stem != "__init__"
        and not (ROOT / "tests" / path.relative_to(PACKAGE)).with_name(f"{path.stem}_test.py").is_file()
    ]
    assert missing == []


def test_registered_names_are_those_of_the_list():
    assert names_of(registered()) == REGISTERED


@pytest.mark.slow
def test_one_import_registers_everything():
    program = """
import json, elmo_tasks
from allennlp.common.registrable import Registrable
print(json.dumps({
    base.__name__: sorted(n for n, (c, _) in entries.items() if c.__module__.split(".")[0] == "elmo_tasks")
    for base, entries in Registrable._registry.items()
}))
"""
    output = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True).stdout
    found = {base: set(names) for base, names in json.loads(output.splitlines()[-1]).items() if names}
    assert found == REGISTERED


@each_registered_class()
def test_annotations_of_a_registered_constructor_are_ones_that_allennlp_can_read(
    base, name, registered_class, constructor
):
    """AllenNLP hands the raw dict of the config to a parameter whose annotation is a string or `X | None`."""
    for parameter in inspect.signature(getattr(registered_class, constructor)).parameters.values():
        for annotation in parts_of(parameter.annotation):
            where = f"{registered_class.__name__}.{constructor}, parameter {parameter.name}"
            assert not isinstance(annotation, (str, typing.ForwardRef)), f"{where}: a string"
            assert type(annotation).__name__ != "UnionType", f"{where}: write typing.Union or typing.Optional"


def parts_of(annotation):
    yield annotation
    for part in typing.get_args(annotation):
        yield from parts_of(part)


@each_registered_class()
def test_docstring_of_a_registered_class_says_its_name(base, name, registered_class, constructor):
    if not issubclass(registered_class, Subcommand):  # its help text is on the command line
        text = " ".join((registered_class.__doc__ or "").split())
        assert f"Registered as a `{base.__name__}` with name" in text or f"Registered as an `{base.__name__}`" in text
        assert f'"{name}"' in text


def test_the_help_of_a_command_leaves_it_to_allennlp_to_say_the_defaults():
    subparsers = ArgumentParserWithDefaults().add_subparsers()
    parsers = [
        command().add_subparser(subparsers) for _, name, command, _ in registered() if issubclass(command, Subcommand)
    ]
    helps = [action.help or "" for parser in parsers for action in parser._actions]
    assert any("(default = " in text for text in helps)
    assert [text for text in helps if "(default = " in text and text.count("default") > 1] == []


def test_no_module_turns_its_annotations_into_strings():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                assert "annotations" not in {alias.name for alias in node.names}, path


@pytest.mark.parametrize("floor", ["bilm", "modules", "models"])
def test_no_number_is_below_the_least_of_half_precision(floor):
    """It would become minus infinity under autocast, and a softmax of nothing else NaN."""
    least = torch.finfo(torch.float16).min
    numbers = []
    for path in (PACKAGE / floor).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                with contextlib.suppress(ValueError):  # not of a literal
                    numbers.append((ast.literal_eval(node), path))
    assert numbers
    assert [found for found in numbers if found[0] < least] == []


def test_spacy_and_nltk_are_imported_by_allennlp_alone():
    """So no model of theirs, and no version, is asked for by this package."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                assert not {"spacy", "nltk"} & {module.split(".")[0] for module in modules}, path


def test_every_public_class_and_function_has_a_docstring():
    missing = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        nodes = [tree, *(node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef)))]
        for node in nodes:
            name = getattr(node, "name", "module")
            if not name.startswith("_") and ast.get_docstring(node) is None:
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert missing == []
