"""Networks written for each system, and their training steps: what `eager-networks` and `compiled` measure."""
