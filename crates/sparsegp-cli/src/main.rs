//! Command line of `sparsegp`.
fn main() {}
