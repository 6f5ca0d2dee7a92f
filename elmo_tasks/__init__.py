"""
ELMo for text classification: an AllenNLP plugin.

Importing this package registers everything that it offers (`allennlp train` does it for every line of
`.allennlp_plugins`, and `--include-package elmo_tasks` anywhere), gives the environment variables of the
configs their defaults, mends what AllenNLP needs to run on today's libraries, keeps files that come from elsewhere
from running code, and lets commands end with a message where their user has made a mistake.
"""

from elmo_tasks.common.version_pairs import check_versions

# Before anything else is imported: a wrong pair of libraries is to end in one sentence.
check_versions()

from elmo_tasks.common import (  # noqa: E402
    compatibility,
    environment,
    faults,
    interruptions,
    mistakes,
    untrusted_files,
    user_errors,
)

environment.set_defaults()
compatibility.apply()
faults.apply()
interruptions.apply()
mistakes.apply()
untrusted_files.apply()
user_errors.show_only_the_message()

from elmo_tasks import commands, dataset_readers, models, modules, predictors, training  # noqa: E402, F401
from elmo_tasks.common.version import VERSION as __version__  # noqa: E402, F401, N811
