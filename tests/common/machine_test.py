import os
import platform

import torch

from elmo_tasks.common import machine
from elmo_tasks.common.machine import describe_machine


def test_machine_is_described_in_words():
    description = describe_machine()
    assert description["Python"] == platform.python_version()
    assert description["torch"] == torch.__version__
    assert description["processor"].endswith(f", {os.cpu_count()} cores, {torch.get_num_threads()} threads")
    assert ("GPU" in description) == torch.cuda.is_available()


def test_processor_is_the_model_name_of_linux(tmp_path, monkeypatch):
    names = tmp_path / "cpuinfo"
    names.write_text("processor\t: 0\nmodel name\t: Fast Chip 9 @ 4GHz\n\nprocessor\t: 1\nmodel name\t: Other\n")
    monkeypatch.setattr(machine, "_CPU_NAMES", names)
    assert describe_machine()["processor"].startswith("Fast Chip 9 @ 4GHz, ")


def test_processor_without_such_a_file_is_its_kind(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_CPU_NAMES", tmp_path / "none")
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert describe_machine()["processor"].startswith(f"{platform.machine()}, ")
