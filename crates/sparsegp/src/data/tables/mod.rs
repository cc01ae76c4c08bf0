//! Tables in files: their columns by name, and what stands in their cells (feature `tables`).

mod batches;
mod cells;
mod charset;
mod columns;
mod csv;
mod cursor;
mod dates;
mod detect;
mod encode;
mod future;
mod inputs;
mod kinds;
mod labels;
mod many;
mod masks;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "no_parquet.rs"]
mod parquet;
mod places;
mod stream;
mod table;
mod tally;
mod text;
mod written;

pub use batches::ShuffledTable;
pub use columns::Selection;
pub use dates::{date_text, days};
pub use encode::EncodeOptions;
pub(crate) use future::days_of;
pub use future::future;
pub use stream::{Blocks, TableSource};
pub use table::{Missing, Selected, Table};
