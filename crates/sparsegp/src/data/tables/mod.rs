//! Tables in files: their columns by name, and what stands in their cells (feature `tables`).

mod batches;
mod calendar;
mod cells;
mod charset;
mod columns;
mod csv;
mod cursor;
mod cut_offs;
mod dates;
mod detect;
mod earth;
mod encode;
mod filling;
mod future;
mod inputs;
mod kinds;
mod labels;
mod lengths;
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
pub use cut_offs::{CutOff, CutOffOptions, CutOffs, cut_offs};
pub use dates::{date_text, days};
pub use encode::EncodeOptions;
pub use filling::Fill;
pub use future::future;
pub(crate) use lengths::days_of;
pub use stream::{Blocks, TableSource};
pub use table::{Missing, Selected, Table};
