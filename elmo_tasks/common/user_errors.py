"""What the console shows when a command ends by what its user has done: a mistake, or Ctrl-C."""

import contextlib
import logging
import sys
import traceback
from types import TracebackType
from typing import Any, Callable, Iterator, Optional, Type

from allennlp.common.checks import ConfigurationError

from elmo_tasks.common.environment import DEBUG, wants_tracebacks

_EXIT_CODE_OF_SIGINT = 130


def show(message: str, error: BaseException) -> None:
    """On stderr."""
    print(f"Error: {message}", file=sys.stderr)


def log(message: str, error: BaseException) -> None:
    """By the handlers of the root logger; to files, with the traceback."""
    root = logging.getLogger()
    for handler in root.handlers:
        exc_info = (type(error), error, error.__traceback__) if isinstance(handler, logging.FileHandler) else None
        handler.handle(root.makeRecord(root.name, logging.CRITICAL, "", 0, message, (), exc_info))


def show_only_the_message(tell: Callable[[str, BaseException], Any] = show) -> None:
    """
    Where this process is a command of `allennlp`: of a mistake that ends it, only the message is shown, which says what
    to do. Of any other error, and with `ALLENNLP_DEBUG`, the traceback is shown as before.

    # Parameters

    tell : `Callable[[str, BaseException], Any]`, optional (default = `show`)
        Gets the message and the error.
    """
    if not _is_command():
        return
    before = sys.excepthook

    def hook(kind: Type[BaseException], error: BaseException, raised: Optional[TracebackType]) -> None:
        if _is_mistake(error) and not wants_tracebacks():
            tell(str(error) if _is_raised_here(raised) else f"{error} (`{DEBUG}=1` shows where)", error)
        else:
            before(kind, error, raised)

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


def _is_raised_here(raised: Optional[TracebackType]) -> bool:
    """By this package, whose messages say what to do."""
    frames = [frame for frame, _ in traceback.walk_tb(raised)]
    return bool(frames) and frames[-1].f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]


def _is_command() -> bool:
    """A program that imports this package keeps its own ways."""
    main = "allennlp.__main__"  # `allennlp` imports it, `python -m allennlp` is it
    specification = getattr(sys.modules["__main__"], "__spec__", None)  # none at all in a debugger
    return main in sys.modules or getattr(specification, "name", None) == main
