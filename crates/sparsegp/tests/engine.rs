//! The engine against dense formulas, on the paths that no bound of the collapsed family takes:
//! rows that see the variances s, slopes b and c that differ from row to row, a q that is not an
//! optimum, several outputs, and sums that are scaled.

#[path = "engine/dense.rs"]
mod dense;
#[path = "engine/gradients.rs"]
mod gradients;
#[path = "engine/rules.rs"]
mod rules;
#[path = "engine/same.rs"]
mod same;
#[path = "engine/statistics.rs"]
mod statistics;
#[path = "common/streamed.rs"]
mod streamed;
