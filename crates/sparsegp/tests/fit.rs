//! From data to a fitted model: training, choices, odd data, units, seeds.

#[path = "fit/averaging.rs"]
mod averaging;
#[path = "fit/bounds.rs"]
mod bounds;
#[path = "fit/certain.rs"]
mod certain;
#[path = "fit/choices.rs"]
mod choices;
#[path = "fit/classes.rs"]
mod classes;
#[path = "fit/coarse.rs"]
mod coarse;
#[path = "fit/convergence.rs"]
mod convergence;
#[path = "fit/deep.rs"]
mod deep;
#[path = "fit/everything.rs"]
mod everything;
#[path = "fit/findings.rs"]
mod findings;
#[path = "fit/full_scale.rs"]
mod full_scale;
#[path = "fit/functions.rs"]
mod functions;
#[path = "fit/guests.rs"]
mod guests;
#[path = "fit/holidays.rs"]
mod holidays;
#[path = "fit/inducing.rs"]
mod inducing;
#[path = "fit/joint.rs"]
mod joint;
#[path = "fit/kernel_choice.rs"]
mod kernel_choice;
#[path = "fit/kernels.rs"]
mod kernels;
#[path = "fit/limits.rs"]
mod limits;
#[path = "fit/log_inputs.rs"]
mod log_inputs;
#[path = "fit/mixed.rs"]
mod mixed;
#[path = "fit/mixed_layers.rs"]
mod mixed_layers;
#[path = "fit/mixed_predictions.rs"]
mod mixed_predictions;
#[path = "fit/noiseless.rs"]
mod noiseless;
#[path = "fit/noisy_inputs.rs"]
mod noisy_inputs;
#[path = "fit/odd.rs"]
mod odd;
#[path = "fit/patches.rs"]
mod patches;
#[path = "fit/places.rs"]
mod places;
#[path = "fit/precise.rs"]
mod precise;
#[path = "fit/recorder.rs"]
mod recorder;
#[path = "fit/restarts.rs"]
mod restarts;
#[path = "fit/resume.rs"]
mod resume;
#[path = "fit/rows.rs"]
mod rows;
#[path = "fit/saved.rs"]
mod saved;
#[path = "fit/schedules.rs"]
mod schedules;
#[path = "fit/seasons.rs"]
mod seasons;
#[path = "fit/seeds.rs"]
mod seeds;
#[path = "fit/series.rs"]
mod series;
#[path = "fit/series_draws.rs"]
mod series_draws;
#[path = "fit/series_labels.rs"]
mod series_labels;
#[path = "fit/settings.rs"]
mod settings;
#[path = "fit/sited.rs"]
mod sited;
#[path = "fit/sparse_draws.rs"]
mod sparse_draws;
#[path = "fit/starts.rs"]
mod starts;
#[path = "fit/stochastic.rs"]
mod stochastic;
#[path = "fit/streams.rs"]
mod streams;
#[path = "fit/support.rs"]
mod support;
#[path = "fit/tables.rs"]
mod tables;
#[path = "fit/target_transform.rs"]
mod target_transform;
#[path = "fit/terms.rs"]
mod terms;
#[path = "fit/training.rs"]
mod training;
#[path = "fit/trend.rs"]
mod trend;
#[path = "fit/units.rs"]
mod units;
#[path = "fit/update.rs"]
mod update;
#[path = "fit/vecchia.rs"]
mod vecchia;
#[path = "fit/whole_resume.rs"]
mod whole_resume;
#[path = "fit/windows.rs"]
mod windows;
