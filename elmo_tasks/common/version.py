"""The version of this package, for `setup.py` and for the records in archives."""

VERSION = "0.1.0"
