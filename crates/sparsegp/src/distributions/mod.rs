//! Distributions of the auxiliary variables of augmented inference.

pub mod functions;
