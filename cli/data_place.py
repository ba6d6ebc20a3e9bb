"""Default place of the data of servers.

Standard library alone: command lines name it in their help.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout, or the folder inside the installed package."""
IS_INSTALLED = (ROOT.parent / "__init__.py").is_file()
"""Inside an import package: installed from a wheel, where data does not belong."""
DATA_HELP = "default: data/{} of the checkout, or of the working directory where it is installed"


def default_data(name: str) -> Path:
    """`data/NAME` of the checkout, or of the working directory where the product is installed."""
    return (Path.cwd() if IS_INSTALLED else ROOT) / "data" / name
