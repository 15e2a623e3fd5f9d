"""What pyproject.toml cannot say: the requirements are those of requirements.txt before its tests, and configs/ goes into the package."""

from pathlib import Path

from setuptools import find_packages, setup

needed = (Path(__file__).parent / "requirements.txt").read_text("utf-8").partition("# Tests")[0]

setup(
    install_requires=[line for line in needed.splitlines() if line and not line.startswith("#")],
    packages=[*find_packages(include=["one_layer", "one_layer.*"]), "one_layer.configs"],
    package_dir={"one_layer.configs": "configs"},
    package_data={"one_layer": ["py.typed"]},
)
