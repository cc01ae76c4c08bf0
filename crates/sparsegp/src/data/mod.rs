//! Tables in blocks of rows: what a model sees of its data.

pub mod source;

pub use source::{InMemory, Rows, Source};
