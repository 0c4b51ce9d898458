"""What goes wrong, as exceptions: one base class, and for each kind also the built-in exception people expect."""

from __future__ import annotations


class Error(Exception):
    """Base of everything Liuli raises; the message is one line that names the place and the values that disagree."""

    code = ""


class NotFoundError(Error, KeyError):
    """No such point, weight or name; the message names the nearest."""

    code = "not_found"

    def __str__(self) -> str:  # KeyError would print the message's repr
        return str(self.args[0]) if self.args else ""


class ModelNotFoundError(Error, FileNotFoundError):
    """No such file or folder."""

    code = "not_found"


class InvalidArgumentError(Error, ValueError):
    """The call asks for something that makes no sense."""

    code = "invalid_argument"


class CorruptFileError(Error, ValueError):
    """The bytes of a file contradict its format or themselves."""

    code = "corrupt_file"


class UnsupportedError(Error, NotImplementedError):
    """Well formed, but Liuli cannot run it; going on would give wrong numbers."""

    code = "unsupported"


class OutOfMemoryError(Error, MemoryError):
    """A limit of memory or of a context."""

    code = "out_of_memory"


class IoError(Error, OSError):
    """The system refused to read or write."""

    code = "io_error"


class CancelledError(Error):
    """The caller stopped the work."""

    code = "cancelled"


_BY_CODE = {
    kind.code: kind
    for kind in (NotFoundError, InvalidArgumentError, CorruptFileError, UnsupportedError, OutOfMemoryError, IoError, CancelledError)
}


def from_code(code: str, message: str) -> Error:
    """The exception for an error of the engine (called by the native module)."""
    return _BY_CODE.get(code, Error)(message)
