"""Running a function on symbols, to write down as a program what it computes."""
