"""What a machine is, for the record of a run."""

import os
import platform
from pathlib import Path
from typing import Dict

import torch

_CPU_NAMES = Path("/proc/cpuinfo")


def describe_machine() -> Dict[str, str]:
    """
    # Returns

    `Dict[str, str]`
        System, processor with the number of its cores, GPUs if there are any, and the versions of Python and torch; in
        words, without anything that names the machine or its user.
    """
    description = {
        "system": f"{platform.system()} {platform.release()}",
        "processor": f"{_processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
    }
    if torch.cuda.is_available():
        gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        description["GPU"] = ", ".join(gpus)
    return {**description, "Python": platform.python_version(), "torch": str(torch.__version__)}


def _processor() -> str:
    """Its name, which Python knows on few systems; its kind elsewhere."""
    if _CPU_NAMES.is_file():
        for line in _CPU_NAMES.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()
