//! The program as people and scripts use it: every test runs the binary in its own folder.

#[path = "cli/support.rs"]
mod support;

#[path = "cli/tables.rs"]
mod tables;

#[path = "cli/augmented.rs"]
mod augmented;
#[path = "cli/backtest.rs"]
mod backtest;
#[path = "cli/batches.rs"]
mod batches;
#[path = "cli/classes.rs"]
mod classes;
#[path = "cli/columns.rs"]
mod columns;
#[path = "cli/commands.rs"]
mod commands;
#[path = "cli/compare.rs"]
mod compare;
#[path = "cli/deep.rs"]
mod deep;
#[path = "cli/embed.rs"]
mod embed;
#[path = "cli/explain.rs"]
mod explain;
#[path = "cli/export.rs"]
mod export;
#[path = "cli/filling.rs"]
mod filling;
#[path = "cli/follow.rs"]
mod follow;
#[path = "cli/forecast.rs"]
mod forecast;
#[path = "cli/formats.rs"]
mod formats;
#[path = "cli/handled.rs"]
mod handled;
#[path = "cli/holidays.rs"]
mod holidays;
#[cfg(unix)]
#[path = "cli/interrupt.rs"]
mod interrupt;
#[path = "cli/kernels.rs"]
mod kernels;
#[path = "cli/limits.rs"]
mod limits;
#[cfg(unix)]
#[path = "cli/lost.rs"]
mod lost;
#[path = "cli/noisy_inputs.rs"]
mod noisy_inputs;
#[path = "cli/numbers.rs"]
mod numbers;
#[path = "cli/options.rs"]
mod options;
#[path = "cli/pages.rs"]
mod pages;
#[path = "cli/patches.rs"]
mod patches;
#[path = "cli/picture.rs"]
mod picture;
#[path = "cli/places.rs"]
mod places;
#[path = "cli/refusals.rs"]
mod refusals;
#[path = "cli/relaxed.rs"]
mod relaxed;
#[path = "cli/remembered.rs"]
mod remembered;
#[cfg(unix)]
#[path = "cli/series_labels.rs"]
mod series_labels;
#[path = "cli/serve.rs"]
mod serve;
#[path = "cli/suggest.rs"]
mod suggest;
#[path = "cli/update.rs"]
mod update;
#[path = "cli/written.rs"]
mod written;
