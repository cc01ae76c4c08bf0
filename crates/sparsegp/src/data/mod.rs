//! Tables in blocks of rows: what a model sees of its data.
//!
//! [`Table::open`] reads a header, [`Table::select`] chooses columns by name, and [`Selected`] reads
//! them: into memory ([`Loaded`]), as a [`Source`] that streams the file to a model ([`TableSource`]),
//! or in blocks to predict for ([`Blocks`]). [`Batches`] are random
//! parts of either for stochastic training. Every error names the file, and the row, column and value
//! where there is one.

pub mod batches;
mod block;
mod classes;
mod encoding;
pub(crate) mod fingerprint;
pub(crate) mod holidays;
mod isolated;
mod loaded;
pub(crate) mod log_inputs;
pub(crate) mod moments;
mod options;
mod sample;
mod scaler;
pub mod shards;
pub mod source;
pub(crate) mod sphere;
mod split;
mod statistics;
#[cfg(feature = "tables")]
mod tables;
mod target_transform;
#[cfg(all(test, feature = "parquet"))]
mod tests;

pub use batches::{Batches, Minibatch, Position, ShuffledInMemory, ShuffledShards};
pub use block::Block;
pub use classes::Classes;
pub use encoding::{Categories, Encoding, Filled, InputColumn, MOST_CODES, MOST_ONE_HOT, Unknown};
pub use fingerprint::Fingerprint;
pub use holidays::{Holiday, Holidays};
pub use isolated::Isolated;
pub use loaded::{Loaded, duplicate_rows};
pub use options::ReadOptions;
pub use sample::Sample;
pub use scaler::Scaler;
pub use shards::{ShardedRows, Shards};
pub use source::{InMemory, Rows, Source};
pub use sphere::{EARTH_RADIUS, first_longitude, input_title, place_point, point_place};
pub use split::Mask;
pub use statistics::Statistics;
#[cfg(feature = "tables")]
pub(crate) use tables::days_of;
#[cfg(feature = "tables")]
pub use tables::{
    Blocks, CutOff, CutOffOptions, CutOffs, EncodeOptions, Fill, Missing, Selected, Selection,
    ShuffledTable, Table, TableSource, cut_offs, date_text, days, future,
};
pub use target_transform::TargetTransform;
