//! Predictions as code for elsewhere: the formula, the header of C that a compiler makes of it.

#[path = "export/c.rs"]
mod c;
#[path = "export/formula.rs"]
mod formula;
#[path = "export/models.rs"]
mod models;
