"""The tests mirror the packages of one_layer/; modules without `test_` are what they share."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
