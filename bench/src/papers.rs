//! Experiments of papers: what they are, how they are run, judged, drawn and reported.

mod entry;
mod plot;
mod report;
mod result;
mod run;

pub use entry::{BLANK, Body, Data, Entry, PAPERS, Paper, Printed};
pub use plot::{Axis, Kind, Panel, Series, contours};
pub use report::{Claim, report};
pub use result::{Check, Outcome, Table, Verdict};
pub use run::{Run, Scale, Settings, execute, stored};
