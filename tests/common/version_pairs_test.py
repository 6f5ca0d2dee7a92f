import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from elmo_tasks.common.version_pairs import check_versions

ROOT = Path(__file__).parents[2]
FITTING = {
    "numpy": "2.4.6",
    "torch": "2.14.1",
    "transformers": "4.49.0",
    "huggingface_hub": "0.36.2",
    "allennlp": "2.10.1",
}
CLASSIC = {
    **FITTING,
    "numpy": "1.24.4",
    "torch": "1.12.1+cu102",
    "transformers": "4.20.1",
    "huggingface_hub": "0.10.1",
}


def installed(versions):
    def version(package):
        if package not in versions:
            raise PackageNotFoundError(package)
        return versions[package]

    return version


@pytest.mark.parametrize("versions", [FITTING, CLASSIC, {}], ids=["modern", "classic", "nothing installed"])
def test_fitting_versions_pass(versions):
    check_versions(installed(versions))


def test_the_versions_that_run_this_test_pass():
    check_versions()


@pytest.mark.parametrize(
    ("wrong", "named", "mend"),
    [
        ({"numpy": "2.2.6", "torch": "1.12.1+cu102"}, ["numpy 2.2.6", "torch 1.12.1+cu102"], "'numpy<2'"),
        ({"numpy": "2.0.0", "torch": "2.2.2"}, ["numpy 2.0.0", "torch 2.2.2"], "'numpy<2'"),
        ({"transformers": "4.50.0"}, ["transformers 4.50.0", "allennlp 2.10.1"], "'transformers<4.50'"),
        (
            {"transformers": "5.0.0.dev0"},
            ["transformers 5.0.0.dev0", "allennlp 2.10.1"],
            "'transformers<4.50'",
        ),
        (
            {"huggingface_hub": "1.0.0rc1"},
            ["huggingface_hub 1.0.0rc1", "allennlp 2.10.1"],
            "'huggingface_hub<1.0'",
        ),
    ],
)
def test_a_wrong_pair_is_one_sentence_with_both_versions_and_the_command_that_mends_it(wrong, named, mend):
    with pytest.raises(ImportError) as error:
        check_versions(installed({**FITTING, **wrong}))
    message = str(error.value)
    for package_and_version in named:
        assert package_and_version in message
    assert message.endswith(f"run: pip install {mend}")
    assert "\n" not in message


def test_a_wrong_pair_ends_the_import_of_the_package_before_anything_else_is_imported(tmp_path):
    for package, version in (("numpy", "2.2.6"), ("torch", "1.12.1")):
        info = tmp_path / f"{package}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    # No other package can be found: not one is needed to say it.
    program = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import elmo_tasks"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], stderr=subprocess.PIPE, text=True)
    last_line = done.stderr.splitlines()[-1]
    assert last_line.startswith("ImportError: numpy 2.2.6 does not work with torch 1.12.1: ")
    assert last_line.endswith("run: pip install 'numpy<2'")


def test_numpy_2_beside_the_first_torch_built_for_it_passes():
    check_versions(installed({**FITTING, "numpy": "2.0.0", "torch": "2.3.0"}))
