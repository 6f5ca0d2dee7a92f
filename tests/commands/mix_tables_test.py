import io

from rich.console import Console

from elmo_tasks.commands.mix_tables import print_mixes
from elmo_tasks.commands.mix_tokens import TokenWeights
from elmo_tasks.commands.mix_weights import MixWeights


def printed(mixes, num_tokens=10, width=100):
    """The cells of each line that has some."""
    console = Console(width=width, file=io.StringIO())
    print_mixes(mixes, num_tokens, console)
    lines = console.file.getvalue().splitlines()
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if "│" in line]


def test_one_model_has_one_row():
    assert printed([MixWeights("runs/mr", "elmo.scalar_mix", [0.25, 0.75], 1.5)]) == [
        ["runs/mr", "0.2500", "0.7500", "1.5000"]
    ]


def test_several_models_have_a_mean_and_a_standard_deviation():
    mixes = [MixWeights(f"runs/{gamma}", "elmo.scalar_mix", [0.25, 0.75], gamma) for gamma in (1.0, 2.0)]
    assert printed(mixes)[2:] == [
        ["mean", "0.2500", "0.7500", "1.5000"],
        ["standard deviation", "0.0000", "0.0000", "0.7071"],
    ]


def test_so_many_tokens_as_asked_for_are_shown():
    tokens = [TokenWeights(token, 3, [0.5, 0.5], 0.25) for token in ("a", "[b]", "c")]
    mix = MixWeights("runs/mr", "elmo.scalar_mix", [0.25, 0.75], 1.5, tokens)
    assert printed([mix], num_tokens=2)[1:] == [
        ["a", "3", "0.5000", "0.5000", "0.2500"],
        ["[b]", "3", "0.5000", "0.5000", "0.2500"],
    ]
    assert len(printed([mix], num_tokens=0)) == 1


def test_square_brackets_are_shown_as_they_are():
    console = Console(width=100, file=io.StringIO())
    tokens = [TokenWeights("[b]", 3, [0.5, 0.5], 0.25)]
    print_mixes([MixWeights("runs/[mr]", "elmo.scalar_mix[0]", [0.25, 0.75], 1.5, tokens)], 1, console)
    text = console.file.getvalue()
    assert "\\" not in text
    for shown in ("elmo.scalar_mix[0]", "│ runs/[mr]", "the tokens of runs/[mr]", "│ [b]"):
        assert shown in text


def test_figures_are_whole_in_a_narrow_console():
    (row, *_) = printed([MixWeights("mr", "elmo.scalar_mix", [0.25, 0.75, 0.0], 1.5)], width=30)
    assert row[1:] == ["0.2500", "0.7500", "0.0000", "1.5000"]
