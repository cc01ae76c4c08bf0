"""The package's sources: none is long, and none imports one that comes after it in a written order."""

from __future__ import annotations

import ast
import importlib
import pickle
from pathlib import Path

import pytest

import sparsegp

PACKAGE = Path(sparsegp.__file__).resolve().parent
LONGEST = 500

# from the bottom up: a module imports only modules above it in this list, inside functions too
ORDER = (
    "_core",
    "_arrays",
    "_progress",
    "_hints",
    "_registry",
    "data",
    "priors",
    "_spec",
    "_own",
    "kernels._kernel",
    "kernels._radial",
    "kernels._inner",
    "kernels._plain",
    "kernels._composed",
    "kernels._custom",
    "kernels",
    "likelihoods._likelihood",
    "likelihoods._custom",
    "likelihoods",
    "means",
    "testing",
    "models._parameters",
    "models._training",
    "models._model",
    "models._kinds",
    "models._regression",
    "models._variational",
    "models._deep",
    "models._gplvm",
    "models",
    "flow",
    "sampling",
    "bayesopt",
    "optuna",
    "_explain",
    "_export",
    "estimators._arguments",
    "estimators._documentation",
    "estimators._filled",
    "estimators._frames",
    "estimators._refused",
    "estimators._missing",
    "estimators._holidays",
    "estimators._places",
    "_future",
    "_backtest",
    "plotting._places",
    "plotting._pictures",
    "plotting._report",
    "plotting._series",
    "plotting",
    "estimators._noisy",
    "estimators._parameters",
    "estimators._rows",
    "estimators._learnt",
    "estimators._saving",
    "estimators._training",
    "estimators._tables",
    "estimators._draws",
    "estimators._latent",
    "estimators._base",
    "estimators._regression",
    "estimators._regressors",
    "estimators._classifier",
    "estimators._gplvm",
    "estimators._files",
    "estimators",
    "shards",
    "mpi",
    "dask._partitions",
    "dask._lazy",
    "dask",
    # the package itself, which has names of all of them
    "",
    "__main__",
)


def module_of(path: Path) -> str:
    """The name below the package's; nothing for the package."""
    parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# stubs of the core's extension module count as sources
SOURCES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py*")) if path.suffix in (".py", ".pyi")}


def full(module: str) -> str:
    return f"sparsegp.{module}" if module else "sparsegp"


def imported(module: str, text: str) -> set[str]:
    """Modules of the package that a module imports, wherever the import stands."""
    package = full(module).split(".")
    if SOURCES.get(module, Path()).name != "__init__.py":
        package = package[:-1]
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                # `from . import a` names a module, or what the package has
                inner = f"{source}.{alias.name}"
                names.add(inner if inner[len("sparsegp.") :] in SOURCES else source)
    return {n[len("sparsegp.") :] for n in names if n == "sparsegp" or n.startswith("sparsegp.")}


def test_no_source_is_long():
    assert len(SOURCES) > 40
    lengths = {m or "__init__": len(p.read_text(encoding="utf-8").splitlines()) for m, p in SOURCES.items()}
    assert {m: n for m, n in lengths.items() if n > LONGEST} == {}


def test_modules_import_only_earlier_ones():
    assert sorted(ORDER) == sorted(SOURCES)
    place = {module: i for i, module in enumerate(ORDER)}
    wrong = [
        f"{full(module)} imports {full(other)}"
        for module, path in SOURCES.items()
        for other in imported(module, path.read_text(encoding="utf-8"))
        if place[other] >= place[module]
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        ("flow", "from . import _core\nfrom ._arrays import Array", {"_core", "_arrays"}),
        (
            "kernels._radial",
            "from ..priors import Parameter\nfrom ._kernel import Kernel",
            {"priors", "kernels._kernel"},
        ),
        ("kernels", "from ._radial import RBF", {"kernels._radial"}),
        ("models._deep", "def f():\n    from ..models import Model", {"models"}),
        ("plotting._report", "if TYPE_CHECKING:\n    import sparsegp.plotting as p", {"plotting"}),
        ("__main__", "import numpy\nfrom sparsegp import GPRegressor, kernels", {"", "kernels"}),
    ],
)
def test_imports_are_found(module, text, expected):
    assert imported(module, text) == expected


@pytest.mark.parametrize(
    "name", ["data", "kernels", "likelihoods", "means", "models", "plotting", "priors", "sampling", "flow"]
)
def test_public_names_lie_where_they_say(name):
    """What `__all__` lists is there, and pickle finds it by the module that it names."""
    module = importlib.import_module(f"sparsegp.{name}")
    for public in module.__all__:
        value = getattr(module, public)
        assert pickle.loads(pickle.dumps(value)) is value
