"""A multilayer perceptron that allocates nothing per step."""
