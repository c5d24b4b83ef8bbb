"""The Range header of an HTTP request."""

from byteranges.parse import Unsatisfiable, parse
from byteranges.serve import body_of

__all__ = ["Unsatisfiable", "body_of", "parse"]
