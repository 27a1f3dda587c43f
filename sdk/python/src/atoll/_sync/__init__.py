# Code generated from _async/__init__.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""The client."""
