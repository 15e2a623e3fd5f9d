"""Trees of variables as flat dictionaries, in which the key of an array is its path, and back. Flax's own functions."""

from flax.traverse_util import flatten_dict, unflatten_dict

__all__ = ["flatten_dict", "unflatten_dict"]
