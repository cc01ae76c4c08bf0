//! What the numbers of a parameter are.

/// What the numbers of a parameter are, where that decides how they start, how they move or how they are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// None of the others.
    #[default]
    Other,
    /// Lengthscales of a kernel.
    Lengthscales,
    /// Periods of a kernel.
    Period,
    /// A variance of a kernel.
    Variance,
    /// The constant of a mean function.
    Constant,
    /// The slopes of a linear mean function.
    Slopes,
    /// A matrix that a mean function multiplies inputs with, and that training does not change.
    Projection,
    /// Inducing points.
    Points,
    /// q, by moments, sites or pseudo-observations.
    Variational,
    /// Factors of the conditional variances of f given u, which belong to q.
    Factors,
}

impl Role {
    /// Returns the role of an entry of a kernel's specification.
    pub(crate) fn of_kernel(name: &str) -> Self {
        match name {
            "lengthscales" => Self::Lengthscales,
            "period" => Self::Period,
            "variance" => Self::Variance,
            _ => Self::Other,
        }
    }

    /// Returns whether a parameter is none of the few that describe a model: inducing points, q, and what is fixed.
    pub fn is_bulky(self) -> bool {
        matches!(self, Self::Points | Self::Variational | Self::Factors | Self::Projection)
    }
}
