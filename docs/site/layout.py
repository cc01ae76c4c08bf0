"""Where the pages of the repository stand on the site, section by section.

An entry is a page, or a pattern for all pages that no other entry names. ``PARTS`` has pages that hang below
another one in the sidebar. A page that is in neither fails the check of ``stage.py``.
"""

# caption, then pages in reading order
SECTIONS: list[tuple[str, list[str]]] = [
    (
        "Tutorials",
        [
            "docs/introduction.md",
            "docs/tutorial.md",
            "crates/sparsegp-python/docs/quickstart.md",
            "crates/sparsegp-python/docs/regression.md",
            "crates/sparsegp-python/docs/classification.md",
            "crates/sparsegp-python/docs/counts.md",
            "crates/sparsegp-python/docs/series.md",
            "crates/sparsegp-python/docs/minutes.md",
            "crates/sparsegp-python/docs/space.md",
            "crates/sparsegp-python/docs/multi-output.md",
            "crates/sparsegp-python/docs/streams.md",
            "crates/sparsegp-python/docs/big-data.md",
            "crates/sparsegp-python/docs/machines.md",
            "crates/sparsegp-python/docs/deep.md",
            "crates/sparsegp-python/docs/latent.md",
            "crates/sparsegp-python/docs/sampling.md",
            "crates/sparsegp-python/docs/optimisation.md",
            "docs/notebooks/README.md",
            "crates/sparsegp-python/docs/*.md",
        ],
    ),
    (
        "How to",
        [
            "docs/gallery/README.md",
            "docs/guide/cookbook.md",
            "docs/examples.md",
            "docs/guide/choosing.md",
            "docs/guide/saving.md",
            "docs/guide/export.md",
            "docs/guide/streams.md",
            "docs/guide/machines.md",
            "docs/guide/noisy_inputs.md",
            "docs/guide/bayesopt.md",
            "crates/sparsegp-python/docs/from-gpflow-gpytorch.md",
            "docs/faq.md",
            "docs/glossary.md",
        ],
    ),
    (
        "Theory",
        [
            "docs/guide/README.md",
            "docs/guide/kernels.md",
            "docs/guide/likelihoods.md",
            "docs/guide/collapsed.md",
            "docs/guide/inducing.md",
            "docs/guide/stochastic.md",
            "docs/guide/predictions.md",
            "docs/guide/*.md",
            "NOTATION.md",
        ],
    ),
    (
        "Reference",
        [
            "docs/reference/README.md",
            "docs/reference/*.md",
            "crates/sparsegp-python/README.md",
            "docs/site/api/index.rst",
            "crates/sparsegp/README.md",
        ],
    ),
    (
        "Evidence",
        [
            "docs/benchmarks.md",
            "docs/against.md",
            "docs/bayesopt.md",
            "docs/guide/peers.md",
            "docs/papers/README.md",
            "docs/guide/errata.md",
            "docs/*.md",
        ],
    ),
    (
        "Project",
        [
            "CONTRIBUTING.md",
            "CODE_OF_CONDUCT.md",
            "DESIGN.md",
            "CHANGELOG.md",
            "SECURITY.md",
            "testdata/data/README.md",
        ],
    ),
]

# pages below a page
PARTS: dict[str, list[str]] = {
    "docs/benchmarks.md": [
        "docs/benchmarks/models.md",
        "docs/benchmarks/defaults.md",
        "docs/benchmarks/sampling.md",
        "docs/benchmarks/machines.md",
    ],
    "docs/gallery/README.md": [
        "docs/gallery/curve.md",
        "docs/gallery/noise.md",
        "docs/gallery/outliers.md",
        "docs/gallery/counts.md",
        "docs/gallery/season.md",
        "docs/gallery/forecast.md",
        "docs/gallery/backtest.md",
        "docs/gallery/terms.md",
        "docs/gallery/classes.md",
        "docs/gallery/three-classes.md",
        "docs/gallery/reliability.md",
        "docs/gallery/predictions.md",
        "docs/gallery/calibration.md",
        "docs/gallery/relevance.md",
        "docs/gallery/effects.md",
        "docs/gallery/map.md",
        "docs/gallery/inducing.md",
        "docs/gallery/training.md",
        "docs/gallery/jumps.md",
        "docs/gallery/layers.md",
        "docs/gallery/embedding.md",
        "docs/gallery/*.md",
    ],
    "docs/papers/README.md": ["docs/papers/*.md"],
    "docs/site/api/index.rst": ["docs/site/api/*.rst"],
}

# folders and files of pages, and where they are on the site; the longest that fits counts
PLACES: dict[str, str] = {
    "README.md": "index.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "": "project/",
    "NOTATION.md": "guide/notation.md",
    "docs/": "",
    "docs/site/api/": "python/api/",
    "crates/sparsegp-python/docs/": "python/",
    "crates/sparsegp-python/README.md": "python/package.md",
    "crates/sparsegp/README.md": "rust-crate.md",
    "testdata/data/README.md": "data.md",
}

# short names in the sidebar, where the title of a page is long or another page's
TITLES: dict[str, str] = {
    "docs/introduction.md": "Introduction",
    "docs/tutorial.md": "The first hour",
    "docs/guide/README.md": "Overview",
    "docs/reference/README.md": "Defaults and units",
    "crates/sparsegp-python/README.md": "Python package",
    "crates/sparsegp/README.md": "Rust crate",
    "testdata/data/README.md": "Data sets",
}
