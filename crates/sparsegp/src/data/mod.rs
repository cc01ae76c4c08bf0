//! Tables in blocks of rows: what a model sees of its data.
//!
//! [`Table::open`] reads a header, [`Table::select`] chooses columns by name, and [`Selected`] reads
//! them: into memory ([`Loaded`]), as a [`Source`] that streams the file to a model ([`TableSource`]),
//! or in blocks to predict for ([`Blocks`]). [`Batches`] are random
//! parts of either for stochastic training. Every error names the file, and the row, column and value
//! where there is one.

pub mod batches;
mod cells;
mod charset;
mod classes;
mod columns;
mod csv;
mod cursor;
mod detect;
mod encode;
mod encoding;
mod isolated;
mod kinds;
mod loaded;
mod many;
pub(crate) mod moments;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "no_parquet.rs"]
mod parquet;
mod places;
mod sample;
mod scaler;
pub mod shards;
pub mod source;
mod split;
mod statistics;
mod stream;
mod table;
mod tally;
#[cfg(all(test, feature = "parquet"))]
mod tests;
mod text;

pub use batches::{Batches, Minibatch, Position, ShuffledInMemory, ShuffledShards, ShuffledTable};
pub use classes::Classes;
pub use columns::Selection;
pub use encode::EncodeOptions;
pub use encoding::{Categories, Encoding, InputColumn, MOST_CODES, MOST_ONE_HOT, date_text, days};
pub use isolated::Isolated;
pub use loaded::{Loaded, duplicate_rows};
pub use options::ReadOptions;
pub use sample::Sample;
pub use scaler::Scaler;
pub use shards::{ShardedRows, Shards};
pub use source::{InMemory, Rows, Source};
pub use split::Mask;
pub use statistics::Statistics;
pub use stream::{Block, Blocks, TableSource};
pub use table::{Missing, Selected, Table};
