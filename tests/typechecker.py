"""What checks the package's type hints while the tests run: beartype, with whole numbers taken for floats (PEP 484)."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
