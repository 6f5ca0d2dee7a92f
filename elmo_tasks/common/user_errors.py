"""What the console shows when a command ends by what its user has done: a mistake, or Ctrl-C."""

import contextlib
import sys
from types import TracebackType
from typing import Any, Callable, Iterator, Optional, Type

from allennlp.common.checks import ConfigurationError

from elmo_tasks.common.environment import wants_tracebacks

_EXIT_CODE_OF_SIGINT = 130


def _print(message: str) -> None:
    print(f"Error: {message}", file=sys.stderr)


def show_only_the_message(tell: Callable[[str], Any] = _print) -> None:
    """
    Where this process is a command of `allennlp`: of a mistake that ends it, only the message is shown, which says what
    to do. Of any other error, and with `ALLENNLP_DEBUG`, the traceback is shown as before.

    # Parameters

    tell : `Callable[[str], Any]`, optional
        Gets the message. Default: it is printed to stderr.
    """
    if not _is_command():
        return
    before = sys.excepthook

    def hook(kind: Type[BaseException], error: BaseException, traceback: Optional[TracebackType]) -> None:
        if _is_mistake(error) and not wants_tracebacks():
            tell(str(error))
        else:
            before(kind, error, traceback)

    sys.excepthook = hook


@contextlib.contextmanager
def told_to_go_on() -> Iterator[None]:
    """
    For `with`, or as a decorator, around a command that goes on where it was interrupted: Ctrl-C ends it with a line
    that says so, and the exit code of an interruption. With `ALLENNLP_DEBUG` the traceback is shown as before.
    """
    try:
        yield
    except KeyboardInterrupt:
        if wants_tracebacks():
            raise
        print("Interrupted. The same command goes on from here.", file=sys.stderr)
        sys.exit(_EXIT_CODE_OF_SIGINT)


def _is_mistake(error: BaseException) -> bool:
    # Without a number from the system, a sentence was written for whoever named the file.
    is_of_a_name = isinstance(error, FileNotFoundError) and error.errno is None
    return is_of_a_name or isinstance(error, ConfigurationError)


def _is_command() -> bool:
    """A program that imports this package keeps its own ways."""
    main = "allennlp.__main__"  # `allennlp` imports it, `python -m allennlp` is it
    return main in sys.modules or getattr(sys.modules["__main__"].__spec__, "name", None) == main
