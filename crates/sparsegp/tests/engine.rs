//! The engine against dense formulas, on the paths that no bound of the collapsed family takes:
//! rows that see the variances s, slopes b and c that differ from row to row, a q that is no optimum,
//! several outputs, and sums that are scaled.

#[path = "engine/dense.rs"]
mod dense;
#[path = "engine/fold.rs"]
mod fold;
#[path = "engine/rules.rs"]
mod rules;
#[path = "engine/same.rs"]
mod same;
#[path = "common/streamed.rs"]
mod streamed;
#[path = "engine/unfold.rs"]
mod unfold;
