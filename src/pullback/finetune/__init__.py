"""Fine-tuning language models: texts to batches, the run, and what is written of it."""
