//! Uncollapsed bounds at random problems: their place on the ladder of methods, gradients against
//! differences for any likelihood, natural gradients.

#[path = "uncollapsed/adjoints.rs"]
mod adjoints;
#[path = "uncollapsed/augmented.rs"]
mod augmented;
#[path = "uncollapsed/classes.rs"]
mod classes;
#[path = "uncollapsed/gradients.rs"]
mod gradients;
#[path = "uncollapsed/ladder.rs"]
mod ladder;
#[path = "uncollapsed/likelihoods.rs"]
mod likelihoods;
#[path = "uncollapsed/mixed.rs"]
mod mixed;
#[path = "ladder/problem.rs"]
#[allow(dead_code)]
mod problem;
#[path = "uncollapsed/same.rs"]
mod same;
#[path = "uncollapsed/sites.rs"]
mod sites;
#[path = "common/streamed.rs"]
mod streamed;
#[path = "uncollapsed/support.rs"]
mod support;
