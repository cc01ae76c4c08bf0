"""The draws of a sampled posterior."""

from __future__ import annotations

from typing import Any, Optional

from .._arrays import Array
from ..sampling import to_arviz


class PosteriorDraws:
    """Draws of a model that was fitted by a sampler, chain by chain.

    Attributes
    ----------
    hyperparameters : dict of arrays of shape (chains, draws)
        By path, such as ``"kernel.variance"``, on the model's scale, that of standardised columns; of frozen ones all
        are the same. Empty unless hyperparameters were sampled (``sampling=dict(hyperparameters=True)``).
    latent : array of shape (chains, draws, n_samples, n_latents) or None
        Means of the latent functions given each draw, at the inputs that were asked for, in the units of
        ``latent_mean_and_variance``.
    shape : tuple of int
        Chains and draws. Where predictions keep fewer draws than were made, they are those that are kept, as one chain.
    """

    def __init__(
        self, hyperparameters: dict[str, Array], latent: Optional[Array], shape: tuple[int, int]
    ) -> None:
        self.hyperparameters = hyperparameters
        self.latent = latent
        self.shape = shape

    def to_arviz(self) -> Any:
        """The draws for ArviZ, which must be installed: a variable for every hyperparameter, and ``f`` for the latent values.

        Returns
        -------
        arviz.InferenceData
            (What stands in its place in ArviZ 1.)

        Raises
        ------
        ImportError
            Without ArviZ.
        """
        variables = dict(self.hyperparameters)
        if self.latent is not None:
            variables["f"] = self.latent
        return to_arviz({"posterior": variables})

    def __repr__(self) -> str:
        chains, draws = self.shape
        return f"PosteriorDraws({chains} chains, {draws} draws, {len(self.hyperparameters)} hyperparameters)"
