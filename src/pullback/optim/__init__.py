"""Optimizers, schedules of the learning rate, and what belongs around them."""
