"""The errors Pullback raises; each is also the built-in error a NumPy user would catch."""

from numpy.exceptions import AxisError as NumpyAxisError
from numpy.linalg import LinAlgError

__all__ = [
    "AxisError", "ConfigurationError", "DeviceError", "DtypeError", "FileFormatError", "GradientError",
    "GraphConsumedError", "IndexingError", "LinearAlgebraError", "NumericalInstabilityError", "PullbackError",
    "ShapeError", "TraceError", "VmapError",
]  # fmt: skip


class PullbackError(Exception):
    """The root of every error raised by Pullback on purpose."""


class ShapeError(PullbackError, ValueError):
    """Shapes do not fit together."""


class DtypeError(PullbackError, TypeError):
    """A dtype is not the one an operation needs."""


class DeviceError(PullbackError, ValueError):
    """A device is unknown, not installed, or mixed with another one."""


class GradientError(PullbackError, RuntimeError):
    """A gradient was asked for where there is none, or would have been lost silently."""


class GraphConsumedError(GradientError):
    """The graph was walked before and its saved values are gone."""


class NumericalInstabilityError(PullbackError, ArithmeticError):
    """A NaN or an infinity appeared where the guard looks."""


class TraceError(PullbackError, RuntimeError):
    """A function cannot be traced: it needs values that a traced array does not have, or has lost track of one."""


class VmapError(PullbackError, RuntimeError):
    """A function cannot be run on many examples at once: it needs the values of one, or has lost track of a tensor."""


class IndexingError(PullbackError, IndexError):
    """An index is not one, or points outside."""


class AxisError(ShapeError, NumpyAxisError):
    """An axis that an array does not have, or one named twice."""


class LinearAlgebraError(PullbackError, LinAlgError):
    """A matrix is singular, not positive definite, or an iteration did not converge."""


class FileFormatError(PullbackError, ValueError):
    """A file is cut off, damaged, or not of the format it should be."""


class ConfigurationError(PullbackError, ValueError):
    """A configuration has a name, a type or a value that is not allowed; the message says where."""
