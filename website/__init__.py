"""The documentation site: pages are run, the API reference is made from docstrings, and MkDocs builds it."""
