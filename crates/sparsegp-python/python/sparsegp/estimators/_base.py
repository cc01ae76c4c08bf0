"""What all estimators have in common."""

from __future__ import annotations

from ._latent import Latent
from ._saving import Saved
from ._tables import FromTables
from ._training import Trained


class BaseGP(Trained, FromTables, Latent, Saved):
    """What all estimators have in common."""
