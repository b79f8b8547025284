"""What users hold."""
