"""The public functions as methods of the tensor."""
