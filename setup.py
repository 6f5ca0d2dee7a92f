"""Packaging of `elmo_tasks`. The README, section "Install", says why AllenNLP is not in the list for new Pythons."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(r'^VERSION = "(.+)"', (HERE / "elmo_tasks/common/version.py").read_text(), re.M).group(1)

# AllenNLP 2.10.1 forbids in its metadata what its code runs on (torch >= 1.13, Python >= 3.11, ...), and pip cannot
# override another package's bounds. So for Python 3.11 and newer we require what AllenNLP imports, and one
# `pip install --no-deps` adds the two archived packages. A bound stands where a newer release removes a name that
# AllenNLP imports before any plugin could mend it.
MODERN = [
    "torch>=2.3",
    "torchvision>=0.18",
    "numpy>=1.26",
    "base58",
    # Both are tested from the oldest to the newest; older releases of cached_path forbid this huggingface_hub.
    "cached_path>=1.6.3",
    "dill",
    "fairscale>=0.4.13",
    "filelock>=3.4,<5",  # 3.4 added an argument that cached_path hands on
    "h5py>=3.10",
    "huggingface_hub>=0.23,<1.0",  # 1.0 removed HfFolder and Repository
    "jsonnet>=0.20",
    "lmdb>=1.4",
    "more-itertools",
    "nltk",
    "requests",
    "scikit-learn",
    "scipy",
    "spacy>=3.7",
    "tensorboardX>=2.6",
    "termcolor",
    "tqdm",
    "transformers>=4.41,<4.50",  # 4.50 removed AdamW
    "matplotlib",  # `allennlp find-lr` fails after its search without it
    "jinja2",  # the page of `allennlp report`
    # allennlp-models only
    "setuptools>=77.0.3,<80.9",  # py-rouge imports pkg_resources, which warns at every start since 80.9
    "conllu",
    "ftfy",
    "py-rouge",
    "word2number",
]
# Python 3.8 to 3.10: AllenNLP's own metadata holds; constraints-classic.txt is what makes pip find it.
CLASSIC = ["allennlp==2.10.1", "allennlp-models==2.10.1", "matplotlib", "jinja2"]

# For `allennlp sweep` alone. Before 4.3 a process that was killed could leave the journal locked.
OPTUNA = "optuna>=4.3"
# For `allennlp predict-bulk` alone; it brings the Dask of its own version.
DASK = "distributed>=2023.5"

setup(
    name="elmo_tasks",
    version=VERSION,
    description="ELMo for text classification: an AllenNLP plugin",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=find_packages(include=["elmo_tasks", "elmo_tasks.*"]),
    package_data={"elmo_tasks.bilm": ["mini/*"], "elmo_tasks.commands": ["report.css", "report.html.j2", "report.js"]},
    python_requires=">=3.8",
    install_requires=[
        *(f'{requirement}; python_version >= "3.11"' for requirement in MODERN),
        *(f'{requirement}; python_version < "3.11"' for requirement in CLASSIC),
    ],
    extras_require={
        "bulk": [DASK],
        "sweep": [OPTUNA],
        "dev": [
            DASK,
            OPTUNA,
            "pytest",
            "pytest-timeout",
            "pytest-xdist",
            "hypothesis",
            "ruff",
            "mypy",
            "import-linter",
        ],
    },
)
