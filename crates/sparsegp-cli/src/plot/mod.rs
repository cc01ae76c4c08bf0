//! Pictures as SVG or PNG: a curve over one input, a map over two, predictions against observations over more;
//! of classes a map, or how reliable their probabilities are.

mod calibration;
pub mod command;
mod contour;
mod counts;
mod curve;
mod earth;
mod effects;
mod inducing;
pub mod latent;
mod layers;
mod look;
mod marker;
mod patches;
mod png;
mod relevance;
mod reliability;
mod scatter;
mod series;
mod style;
mod surface;
mod terms;
#[cfg(test)]
mod tests;
mod training;

use crate::data::{BLOCK, Opened};
use crate::fail::{Fail, Result};
use crate::kind::{Kind, has_categories, labels};
use crate::outputs::has_extension;
use crate::report::latent_names;
use crate::score::{AllScores, Score};
use clap::ValueEnum;
use effects::Effect;
pub use look::Look;
use look::Panel;
use plotters::prelude::*;
pub use series::{Series, Stretch};
use sparsegp::atomic::write_atomically;
use sparsegp::data::Selected;
use sparsegp::explain::{Curve, Explainer, Options};
use sparsegp::fit::quality::Quality;
use sparsegp::fit::{Fitted, Of};
use sparsegp::linalg::{Mat, column};
use sparsegp::metrics::classes::ClassScores;
use std::cmp::Ordering;
use std::path::Path;
use style::Ticks;
use terms::Effects;

/// Most points in a panel, up to a factor of two.
const POINTS: usize = 3000;
type Drawn<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Most rows on a map, where marks are large.
const MARKS: usize = 1500;

/// Rows of a picture that have all their targets: inputs (B×D) and targets (B×P) in their own units,
/// and their further numbers, if they have some; with what they are called.
struct Sampled {
    named: &'static str,
    x: Mat<f64>,
    y: Mat<f64>,
    extra: Vec<f64>,
}

/// Returns evenly spaced rows, at most twice [`POINTS`] of them.
fn sample(fitted: &Fitted, rows: &Selected) -> Result<Sampled> {
    let (mut kept, mut stride) = (Vec::new(), 1);
    for block in rows.blocks(BLOCK, None)? {
        let block = block?;
        for i in (0..block.rows.len()).filter(|i| (block.start + i) % stride == 0) {
            let row = |a: &Mat<f64>| (0..a.ncols()).map(|j| a[(i, j)]).collect::<Vec<_>>();
            let (x, y) = (row(&block.x), row(&block.y));
            if y.iter().all(|y| !y.is_nan()) {
                kept.push((block.start + i, x, y, block.extra.get(i).copied()));
            }
        }
        while kept.len() > 2 * POINTS {
            stride *= 2;
            kept.retain(|(index, ..)| index % stride == 0);
        }
    }
    let (d, p) = (fitted.input_names.len(), fitted.target_names.len());
    Ok(Sampled {
        named: "rows",
        x: Mat::from_fn(kept.len(), d, |i, j| kept[i].1[j]),
        y: Mat::from_fn(kept.len(), p, |i, j| kept[i].2[j]),
        extra: kept.iter().filter_map(|(.., extra)| *extra).collect(),
    })
}

/// Refuses a name that does not say what the picture is.
pub fn check_name(option: &str, path: &Path) -> Result<()> {
    if has_extension(path, "svg") || has_extension(path, "png") {
        return Ok(());
    }
    let path = path.display();
    Err(Fail::usage(format!(
        "{option} {path}: pictures are SVG or PNG; end the name in .svg or .png"
    )))
}

/// Writes a picture as what its name says.
pub fn write(path: &Path, svg: &str) -> Result<()> {
    let bytes = match has_extension(path, "png") {
        true => png::png(svg).map_err(failed)?,
        false => svg.as_bytes().to_vec(),
    };
    Ok(write_atomically(path, &bytes)?)
}

fn failed(error: Box<dyn std::error::Error>) -> Fail {
    Fail::Work(format!("a picture cannot be drawn: {error}"))
}

/// Draws so many panels, one below the other, as SVG.
fn svg(panels: usize, look: &Look, draw: impl FnMut(usize, &Panel) -> Drawn) -> Result<String> {
    svg_beside(1, panels, look, draw)
}

/// Draws so many panels, up to `most` beside each other, as SVG.
fn svg_beside(
    most: usize,
    panels: usize,
    look: &Look,
    mut draw: impl FnMut(usize, &Panel) -> Drawn,
) -> Result<String> {
    let mut svg = String::new();
    let (width, height) = look.size;
    let columns = panels.clamp(1, most);
    let lines = panels.div_ceil(columns);
    let size = (width * columns as u32, height * lines as u32);
    let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let mut draw_all = || -> Drawn {
        root.fill(&WHITE)?;
        for (p, area) in root.split_evenly((lines, columns)).into_iter().take(panels).enumerate() {
            draw(p, &Panel::new(area, look))?;
        }
        root.present()?;
        Ok(())
    };
    let drawn = draw_all();
    drop(root);
    // names of columns may hold what XML forbids
    if svg.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        svg = svg.chars().fold(String::with_capacity(svg.len()), |mut out, c| {
            match c.is_control() && !matches!(c, '\n' | '\r' | '\t') {
                true => out.extend(c.escape_default()),
                false => out.push(c),
            }
            out
        });
    }
    drawn.map_err(failed)?;
    // rectangles side by side leave no seam where the picture is scaled
    Ok(svg.replacen(">\n", ">\n<style>rect{shape-rendering:crispEdges}</style>\n", 1))
}

/// What a picture shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The function where there are one or two inputs; else predictions against observations, or the
    /// reliability of classes
    #[default]
    Fit,
    /// Predictions against observations
    Predictions,
    /// How often intervals hold the targets; of classes how often they are right
    Calibration,
    /// How finely the function varies along every input
    Relevance,
    /// How the objective rose
    Training,
    /// How much of the rows' prior variance the inducing points leave unexplained
    Inducing,
    /// The inducing patches of a convolutional kernel, and the weights of places
    Patches,
    /// What the hidden layers of a deep model do to the input that matters most
    Layers,
    /// The terms of a sum that are functions of one input each, centred, the largest first
    Terms,
    /// How predictions depend on every input (partial dependence), the largest first
    Effects,
    /// What share of the variance of predictions every input explains, with its interactions
    Shares,
}

impl What {
    /// Returns whether rows are drawn.
    pub fn needs_rows(self) -> bool {
        !matches!(self, Self::Relevance | Self::Training | Self::Patches)
    }

    /// Returns it in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Fit => "The fit",
            Self::Predictions => "Predictions against observations",
            Self::Calibration => "Calibration",
            Self::Relevance => "Relevance of the inputs",
            Self::Training => "Training",
            Self::Inducing => "Inducing points",
            Self::Patches => "Inducing patches",
            Self::Layers => "Hidden layers",
            Self::Terms => "Terms of single inputs",
            Self::Effects => "How predictions depend on each input",
            Self::Shares => "What each input explains",
        }
    }

    /// Returns why there is no such picture of a model.
    pub fn cannot(self, fitted: &Fitted) -> Option<&'static str> {
        let classes = Kind::of(fitted) == Kind::Classes;
        match self {
            Self::Predictions if classes => Some("the targets are classes: see --what calibration"),
            Self::Relevance if relevance::inputs(fitted).is_empty() => {
                Some("its kernel has no lengthscales")
            }
            Self::Training if !training::has_history(fitted) => {
                Some("it keeps no history of a training")
            }
            Self::Inducing => crate::inducing::cannot(fitted),
            Self::Patches if !patches::are_there(fitted) => Some(
                "it has no inducing patches: a sparse method with the kernel `convolutional` has",
            ),
            Self::Layers if fitted.model.hidden.is_empty() => {
                Some("it has no hidden layers: the method `deep` has")
            }
            Self::Terms => terms::cannot(fitted),
            Self::Effects | Self::Shares => match fitted.measured_names().len() {
                0 | 1 => Some("it has one input: see --what fit"),
                inputs if inputs > MOST_INPUTS => Some("it has more than 100 inputs"),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Draws a picture that shows only the model.
pub fn of_model(what: What, fitted: &Fitted, look: &Look) -> Result<String> {
    svg(1, look, |_, panel| match what {
        What::Training => training::panel(panel, fitted),
        What::Patches => patches::panel(panel, fitted),
        _ => relevance::panel(panel, fitted),
    })
}

/// Returns what stands above the picture of a target: its name, and the model.
pub fn caption(fitted: &Fitted, p: usize) -> String {
    style::caption(fitted, p, "")
}

/// Draws series with their forecasts, one below the other.
pub fn series(path: &Path, all: &[Series]) -> Result<()> {
    write(path, &svg(all.len(), &Look::default(), |p, panel| series::panel(panel, &all[p]))?)
}

/// Draws how reliable probabilities of classes are.
pub fn reliability(path: &Path, fitted: &Fitted, which: &str, of: &ClassScores) -> Result<()> {
    write(path, &reliable(fitted, which, of, &Look::default())?)
}

fn reliable(fitted: &Fitted, which: &str, of: &ClassScores, look: &Look) -> Result<String> {
    let caption = style::caption(fitted, 0, &format!(", {which}"));
    svg(1, look, |_, panel| reliability::panel(panel, &caption, &of.reliability, of.ece))
}

/// Draws a model into a file; `judged` are its scores on the test rows, or on the training rows where
/// there are none.
pub fn draw(path: &Path, fitted: &Fitted, opened: &Opened, judged: &AllScores) -> Result<()> {
    write(path, &of_rows(What::Fit, fitted, opened, judged, &Look::default())?)
}

/// Draws a picture of a model with rows; `judged` as for [`draw`].
pub fn of_rows(
    what: What,
    fitted: &Fitted,
    opened: &Opened,
    judged: &AllScores,
    look: &Look,
) -> Result<String> {
    if what == What::Fit
        && fitted.measured_names().len() <= 2
        && !fitted.input_deviations.is_empty()
    {
        // the function itself, at inputs that are known exactly
        let exact = fitted.clone().without_input_deviations();
        return of_rows(what, &exact, opened, judged, look);
    }
    if what == What::Inducing {
        return explained(fitted, &crate::inducing::judge(fitted, opened, None)?, look);
    }
    if what == What::Layers {
        let train = sample(fitted, &opened.train)?;
        let count = fitted.model.hidden.len();
        return svg(count, look, |l, panel| layers::panel(panel, fitted, l, &train));
    }
    if matches!(what, What::Effects | What::Shares) {
        return of_inputs(what, fitted, opened, look);
    }
    if what == What::Terms {
        let effects = Effects::of(fitted, &sample(fitted, &opened.train)?)?;
        return svg_beside(2, effects.count(), look, |t, panel| effects.panel(panel, fitted, t));
    }
    // between labels there is nothing to draw
    let labels = has_categories(fitted);
    let inputs = fitted.input_names.len();
    let tested = if opened.test.is_some() { "test rows" } else { opened.named };
    if let Score::Classes(of) = &judged.overall
        && !(what == What::Fit && on_a_map(fitted) && !labels)
    {
        return reliable(fitted, tested, of, look);
    }
    let train = Sampled { named: opened.named, ..sample(fitted, &opened.train)? };
    let test = opened.test.as_ref().map(|rows| sample(fitted, rows)).transpose()?;
    let judged = test.as_ref().unwrap_or(&train);
    // without a default there is nothing to draw a curve for
    let needs = fitted.model.likelihood.extra().is_some_and(|extra| extra.default.is_none());
    let rows_only = needs || labels;
    svg(fitted.target_names.len(), look, |p, panel| match (what, inputs) {
        (What::Calibration, _) => calibration::panel(panel, fitted, p, judged, tested),
        (What::Fit, 1) if !rows_only => match Kind::of(fitted) {
            Kind::Counts => curve::counts(panel, fitted, p, &train, test.as_ref()),
            _ => curve::panel(panel, fitted, p, &train, test.as_ref()),
        },
        (What::Fit, _) if on_a_map(fitted) && !rows_only => map(panel, fitted, p, &train),
        _ => scatter::panel(panel, fitted, p, judged, tested),
    })
}

/// Most panels of effects; those that change least are left out.
const MOST_EFFECTS: usize = 16;
/// Most inputs that are explained in pictures: every one of them is work.
const MOST_INPUTS: usize = 100;
/// Size of their panels, of which two are beside each other.
const EFFECT: (u32, u32) = (600, 360);

/// Draws how predictions depend on inputs, or what these explain, over the training rows.
fn of_inputs(what: What, fitted: &Fitted, opened: &Opened, look: &Look) -> Result<String> {
    let rows = sample(fitted, &opened.train)?;
    let explainer = Explainer::new(fitted, rows.x.as_ref(), Options::default())?;
    if what == What::Effects {
        let columns = 0..explainer.columns().len();
        let curves =
            columns.map(|at| explainer.partial(at)).collect::<sparsegp::Result<Vec<_>>>()?;
        return effects(&explainer, &curves, look);
    }
    let (shares, _) = explainer.sensitivity(&|| Ok(()))?;
    let names = explainer.responses();
    svg(shares.len(), look, |c, panel| {
        let inputs = explainer.columns().iter().zip(&shares[c].total);
        let mut all: Vec<(String, f64)> =
            inputs.map(|(column, share)| (column.name.clone(), share.mean)).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        let shown = &all[..all.len().min(MOST_EFFECTS)];
        let more = match all.len() - shown.len() {
            0 => String::new(),
            more => format!(", {more} smaller ones left out"),
        };
        let caption = format!("what explains the predictions of {}{more}", names[c]);
        relevance::bars(panel, &caption, shown, "share of the variance, with interactions")
    })
}

/// Draws the effects of inputs on predictions, a panel for each, the largest first.
pub fn effects(explainer: &Explainer<'_>, curves: &[Curve], look: &Look) -> Result<String> {
    let responses = explainer.responses().len();
    let each = |response| curves.iter().map(move |curve| Effect { curve, response });
    let mut all: Vec<Effect<'_>> = (0..responses).flat_map(each).collect();
    all.sort_by(|a, b| {
        (a.response, b.span()).partial_cmp(&(b.response, a.span())).unwrap_or(Ordering::Equal)
    });
    all.truncate(MOST_EFFECTS);
    let size = if look.size == Look::default().size { EFFECT } else { look.size };
    let look = Look { size, ..look.clone() };
    svg_beside(2, all.len(), &look, |at, panel| effects::panel(panel, explainer, &all[at], &all))
}

/// Draws how much the inducing points explain, a panel for every set of them.
pub fn explained(fitted: &Fitted, quality: &Quality, look: &Look) -> Result<String> {
    let names = match quality.processes.len() {
        1 => vec![fitted.target_names.join(", ")],
        _ => latent_names(fitted),
    };
    svg(quality.processes.len(), look, |l, panel| {
        inducing::panel(panel, &names[l], &quality.processes[l])
    })
}

/// Returns whether the inputs are two numbers, or one place on Earth.
fn on_a_map(fitted: &Fitted) -> bool {
    fitted.input_names.len() == 2 || earth::is_place(fitted)
}

/// Draws a function of two inputs, or of places by longitude and latitude, with the training rows.
fn map(panel: &Panel, fitted: &Fitted, p: usize, train: &Sampled) -> Drawn {
    let step = train.x.nrows().div_ceil(MARKS).max(1);
    let rows: Vec<usize> = (0..train.x.nrows()).step_by(step).collect();
    let plane = earth::Plane::of(fitted, &train.x);
    let points: Vec<(f64, f64)> = rows.iter().map(|i| plane.at(&train.x, *i)).collect();
    let inducing: Vec<(f64, f64)> = match fitted.inducing_points()? {
        Some(z) => (0..z.nrows()).map(|i| plane.at(&z, i)).collect(),
        None => Vec::new(),
    };
    let all = 0..train.x.nrows();
    let grid = plane.grid(all.map(|i| plane.at(&train.x, i)));
    let nodes = plane.inputs(&grid.nodes());
    let names = plane.names(fitted);
    let caption = style::caption(fitted, p, "");
    let scene = surface::Scene {
        caption: &caption,
        names: (names.0.as_str(), names.1.as_str()),
        ticks: (Ticks::of(fitted, 0), Ticks::of(fitted, 1)),
        grid: &grid,
        points: &points,
        inducing: &inducing,
    };
    if Kind::of(fitted) == Kind::Classes {
        let probabilities = fitted.predict_proba(nodes.as_ref())?;
        let own: Vec<usize> = rows.iter().map(|i| train.y[(*i, p)] as usize).collect();
        let names = labels(fitted);
        let of = surface::Classes { names: &names, probabilities: &probabilities, labels: &own };
        return surface::classes(panel, &scene, &of);
    }
    let (mean, variance) = fitted.predict(nodes.as_ref(), Of::Observations)?;
    let deviation: Vec<f64> =
        column(variance.as_ref(), p).iter().map(|variance| variance.sqrt()).collect();
    let targets: Vec<f64> = rows.iter().map(|i| train.y[(*i, p)]).collect();
    let of = surface::Values {
        name: &fitted.target_names[p],
        mean: column(mean.as_ref(), p),
        deviation: &deviation,
        targets: &targets,
    };
    surface::values(panel, &scene, &of)
}
