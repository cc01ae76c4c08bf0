//! A Bayesian network on digits: Table 1, Figures A2 and A3.

use super::methods::MEDIAN;
use sparsegp::flow::compared::{
    DescentOptions, Dsvi, Elrgvi, MapOptions, Root, Svgd, SvgdOptions, Swag, SwagOptions, map,
};
use sparsegp::flow::targets::Network;
use sparsegp::flow::{
    Blocks, Factor, Gf, GfOptions, Gpf, GpfOptions, Particles, Rule, Solver, Target,
};
use sparsegp::linalg::Mat;
use sparsegp::metrics::classes::{ClassMetrics, ClassOptions};
use sparsegp::rng;
use sparsegp_bench::load;
use sparsegp_bench::page::{Drawn, normal};
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};
use std::time::Instant;

/// Scores.
pub const TABLE: Entry = Entry {
    name: "flow-table1",
    item: "Table 1",
    shows: "NLL, accuracy and ECE of a Bayesian network on digits",
    rule: "the best of GPF's NLLs is below that of SWAG and that of ELRGVI; that of SVGD is below all \
               others; mean field is worse \
           than layers of full rank for GPF",
    body: Body::Program(table),
    ..ALL
};

/// Scores by time.
pub const BY_TIME: Entry = Entry {
    name: "flow-figure-a2",
    item: "Figure A2",
    shows: "error and NLL of the network by time",
    rule: "the NLL of GPF (layers) after all steps is not above that of any earlier look by more than 0.01",
    body: Body::Program(by_time),
    ..ALL
};

/// Reliability.
pub const RELIABILITY: Entry = Entry {
    name: "flow-figure-a3",
    item: "Figure A3",
    shows: "accuracy of the network by confidence",
    rule: "the ECE of GPF is below 0.05, and that of ELRGVI above it",
    body: Body::Program(reliability),
    ..ALL
};

const ALL: Entry = Entry {
    paper: "flow",
    data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
    protocol: "784–200–200–10 units, minibatches of 128, RMSProp, from a mode (MAP) with particles \
               spread by 0.1, ranks 5 and 10; \
               predictions by 100 draws or the particles",
    scaled: "a sixth of the digits",
    ..BLANK
};

/// The thesis: NLL by mean field, rank 5, rank 10.
const PRINTED: [(&str, &str); 6] = [
    ("GPF", ".183, .166, .172"),
    ("GPF, layers", "–, .147, .178"),
    ("GF", ".178, .185, .171"),
    ("SVGD", "–, .139, .133"),
    ("SWAG", "–, .257, .287"),
    ("ELRGVI", "–, .453, .537"),
];

/// A mode of the network on so many digits, and digits to predict.
struct Setting {
    network: Network,
    mode: Vec<f64>,
    test: Mat<f64>,
    classes: Vec<f64>,
    rows: usize,
    steps: usize,
}

/// How a method predicts: probabilities at every look, with seconds.
struct Found {
    name: String,
    rank: String,
    looks: Vec<(f64, Mat<f64>)>,
    seconds: f64,
}

/// What looks at a solver's law.
type Law<'a, S> = &'a dyn Fn(&S) -> sparsegp::Result<Mat<f64>>;

impl Setting {
    fn new(run: &mut Run<'_>) -> sparsegp::Result<Self> {
        run.smaller("`mnist-t10k` for MNIST");
        let hidden = run.sized("units of a layer", [8, 50, 200, 200]);
        let steps = run.sized("steps", [40, 500, 2000, 5001]);
        let rows = run.size([300, 8000, 8000, 8000]);
        let table = load("mnist-t10k", true);
        let n = table.x.nrows();
        let order = rng::permutation(&mut rng::stream(run.seed(), "flows/digits"), n, n);
        let x = |from: usize, to: usize| {
            Mat::from_fn(to - from, 784, |i, q| table.x[(order[from + i], q)] / 255.0)
        };
        let y = |from: usize, to: usize| (from..to).map(|i| table.y[(order[i], 0)]);
        let sizes = vec![784, hidden, hidden, 10];
        let labels = y(0, rows).map(|class| class as usize).collect();
        let network =
            Network::new(sizes.clone(), x(0, rows), labels, 1.0)?.in_batches(128, run.seed())?;
        let mut rng = rng::stream(run.seed() + 1, "flows/network");
        let mut begin = Vec::with_capacity(network.dim());
        for pair in sizes.windows(2) {
            let size = (pair[0] as f64).sqrt().recip();
            begin.extend((0..pair[1] * pair[0]).map(|_| size * normal(&mut rng)));
            begin.extend(vec![0.0; pair[1]]);
        }
        let epochs = rows.div_ceil(128);
        let count = run.size([1, 20, 20, 20]) * epochs;
        let of_map = MapOptions { steps: count, rate: 1e-3, ..MapOptions::default() };
        let mode = map(&mut network.clone(), &begin, &of_map)?.position;
        let from = n - 2000;
        Ok(Self { network, mode, test: x(from, n), classes: y(from, n).collect(), rows, steps })
    }

    fn predicted(&self, theta: &Mat<f64>) -> sparsegp::Result<Mat<f64>> {
        self.network.probabilities(theta.as_ref(), self.test.as_ref())
    }

    fn scores(&self, p: &Mat<f64>) -> sparsegp::Result<[f64; 3]> {
        let mut metrics = ClassMetrics::new(10, ClassOptions::default())?;
        metrics.add(&self.classes, p.as_ref(), None)?;
        let scores = metrics.finish()?;
        Ok([scores.log_loss, scores.accuracy, scores.ece])
    }

    /// Advances a solver, and looks at what its law predicts so many times.
    fn follow<S: Solver>(
        &self,
        (name, rank): (&str, &str),
        mut solver: S,
        looks: usize,
        law: Law<'_, S>,
    ) -> sparsegp::Result<Found> {
        let (mut network, mut seconds) = (self.network.clone(), 0.0);
        let mut found = Found { name: name.into(), rank: rank.into(), looks: Vec::new(), seconds };
        let every = self.steps.div_ceil(looks);
        for step in 0..self.steps {
            let clock = Instant::now();
            match solver.advance(&mut network, step) {
                // whoever loses itself has no later looks
                Err(error) if error.is_recoverable() => break,
                Err(error) => return Err(error),
                Ok(_) if !solver.is_finite() => break,
                Ok(_) => {}
            }
            seconds += clock.elapsed().as_secs_f64();
            if (step + 1) % every == 0 || step + 1 == self.steps {
                found.looks.push((seconds, self.predicted(&law(&solver)?)?));
            }
        }
        found.seconds = seconds;
        Ok(found)
    }

    fn cloud(&self, count: usize, seed: u64) -> sparsegp::Result<Particles> {
        // a tenth of the prior's deviation: as wide as it, no particle is near a mode
        Particles::around(&self.mode, &vec![0.1; self.mode.len()], count, seed)
    }

    fn gpf(
        &self,
        blocks: Blocks,
        of: (&str, &str),
        count: usize,
        looks: usize,
    ) -> sparsegp::Result<Found> {
        let diagonal = blocks == Blocks::Diagonal;
        let options = GpfOptions {
            mean_rate: RATE,
            spread_rate: RATE,
            blocks,
            rule: Rule::rms_prop(),
            ..GpfOptions::default()
        };
        let gpf = Gpf::new(self.cloud(count, count as u64)?, options)?;
        let dim = self.mode.len();
        self.follow(of, gpf, looks, &|own| {
            let own = own.particles();
            if !diagonal {
                return Ok(own.x().to_owned());
            }
            let (mean, variances, mut rng) = (own.mean(), own.variances(), draw());
            let of = |i: usize, _: usize| mean[i] + variances[i].sqrt() * normal(&mut rng);
            Ok(Mat::from_fn(dim, DRAWS, of))
        })
    }

    fn gf(&self, rank: Option<usize>, looks: usize) -> sparsegp::Result<Found> {
        let options = GfOptions {
            mean_rate: 0.1 * RATE,
            spread_rate: 0.1 * RATE,
            rule: Rule::rms_prop(),
            draws: rank.map_or(10, |rank| rank + 1),
            ..GfOptions::default()
        };
        let factor = match rank {
            None => Factor::Diagonal(vec![0.1; self.mode.len()]),
            Some(rank) => {
                let start = self.cloud(rank + 1, 7)?.deviations();
                let scale = (rank as f64).sqrt().recip();
                Factor::Whole(Mat::from_fn(start.nrows(), rank, |i, k| scale * start[(i, k)]))
            }
        };
        let gf = Gf::new(self.mode.clone(), factor, options)?;
        let of = rank.map_or("mean field".to_owned(), |rank| rank.to_string());
        self.follow(("GF", &of), gf, looks, &|own| Ok(own.draw(DRAWS, &mut draw())))
    }

    fn elrgvi(&self, rank: usize) -> sparsegp::Result<Found> {
        let rule = Rule::rms_prop();
        let descent =
            DescentOptions { rate: 0.1 * RATE, rule, draws: 1, ..DescentOptions::default() };
        let mut elrgvi = Elrgvi::new(&self.network, &self.mode, 0.05, rank, descent)?;
        let (mut network, clock) = (self.network.clone(), Instant::now());
        for step in 0..self.steps {
            elrgvi.advance(&mut network, step)?;
        }
        let seconds = clock.elapsed().as_secs_f64();
        let p = elrgvi.probabilities(self.test.as_ref(), DRAWS, &mut draw())?;
        Ok(Found {
            name: "ELRGVI".into(),
            rank: rank.to_string(),
            looks: vec![(seconds, p)],
            seconds,
        })
    }

    /// The methods with particles or factors of a rank.
    fn of_rank(&self, rank: usize, looks: usize) -> sparsegp::Result<Vec<Found>> {
        let name = rank.to_string();
        let rule = Rule::rms_prop();
        let svgd = SvgdOptions { kernel: MEDIAN, rate: RATE, rule, ..SvgdOptions::default() };
        let svgd = Svgd::new(self.cloud(rank + 1, 11)?, svgd)?;
        let swag =
            SwagOptions { rate: 0.01, momentum: 0.9, every: 10, keep: rank, rows: self.rows };
        let swag = Swag::new(self.mode.clone(), swag)?;
        Ok(vec![
            self.gpf(Blocks::Whole, ("GPF", &name), rank + 1, looks)?,
            self.gpf(self.network.layers(), ("GPF, layers", &name), rank + 1, looks)?,
            self.gf(Some(rank), looks)?,
            self.follow(("SVGD", &name), svgd, looks, &|own| Ok(own.particles().x().to_owned()))?,
            self.follow(("SWAG", &name), swag, 1, &|own| own.moments().draw(DRAWS, &mut draw()))?,
            self.elrgvi(rank)?,
        ])
    }

    fn mean_field(&self) -> sparsegp::Result<Vec<Found>> {
        let rule = Rule::rms_prop();
        let descent =
            DescentOptions { rate: 0.1 * RATE, rule, draws: 10, ..DescentOptions::default() };
        let root = Root::Diagonal(vec![0.1; self.mode.len()]);
        let dsvi = Dsvi::new(self.mode.clone(), root, descent)?;
        Ok(vec![
            self.gpf(Blocks::Diagonal, ("GPF", "mean field"), 10, 1)?,
            self.gf(None, 1)?,
            self.follow(("DSVI", "mean field"), dsvi, 1, &|own| Ok(own.draw(DRAWS, &mut draw())))?,
        ])
    }
}

const RATE: f64 = 0.01;
const DRAWS: usize = 100;

fn draw() -> Box<dyn rand::Rng> {
    Box::new(rng::stream(2, "flows/draws"))
}

fn table(run: &mut Run<'_>) -> Drawn {
    let setting = Setting::new(run)?;
    let head = ["method", "rank", "NLL", "accuracy", "ECE", "ms a step"];
    let mut table = Table::new("", &head);
    let mut least: Vec<(String, String, f64)> = Vec::new();
    let ranks: &[usize] = match run.size([0, 1, 2, 2]) {
        0 | 1 => &[5],
        _ => &[5, 10],
    };
    let mut all = Vec::new();
    for rank in ranks {
        all.extend(setting.of_rank(*rank, 1)?);
    }
    all.extend(setting.mean_field()?);
    let one = Mat::from_fn(setting.mode.len(), 1, |i, _| setting.mode[i]);
    let at_mode = setting.scores(&setting.predicted(&one)?)?.map(|v| format!("{v:.3}"));
    table.row([&["MAP".to_owned(), "a point".to_owned()][..], &at_mode, &["–".into()]].concat());
    for found in &all {
        let Some((_, p)) = found.looks.last() else {
            let lost = ["lost", "–", "–", "–"].map(str::to_owned);
            table.row([&[found.name.clone(), found.rank.clone()][..], &lost].concat());
            continue;
        };
        let scores = setting.scores(p)?;
        let cells = scores.map(|v| format!("{v:.3}"));
        let each = format!("{:.0}", 1e3 * found.seconds / setting.steps as f64);
        table.row([&[found.name.clone(), found.rank.clone()][..], &cells, &[each]].concat());
        least.push((found.name.clone(), found.rank.clone(), scores[0]));
    }
    run.table(table);
    let mut printed =
        Table::new("NLL in the thesis: mean field, rank 5, rank 10", &["method", "NLL"]);
    PRINTED.iter().for_each(|(name, nll)| printed.row(vec![(*name).into(), (*nll).into()]));
    run.table(printed);
    let best = |begins: &str, field: bool| {
        let own = least
            .iter()
            .filter(|(name, rank, _)| name.starts_with(begins) && (rank == "mean field") == field);
        own.map(|own| own.2).fold(f64::INFINITY, f64::min)
    };
    let gpf = best("GPF", false);
    for (rival, printed) in [("SWAG", ".147 and .257"), ("ELRGVI", ".147 and .453")] {
        let other = best(rival, false);
        let ours = format!("{gpf:.3} and {other:.3}");
        run.holds(&format!("GPF below {rival}"), printed, ours, gpf < other);
    }
    let svgd = best("SVGD", false);
    let rest = gpf.min(best("GF", false)).min(best("SWAG", false)).min(best("ELRGVI", false));
    let ours = format!("{svgd:.3}, the best of the others {rest:.3}");
    run.holds("SVGD the best", ".133, the best of the others .147", ours, svgd < rest);
    let (field, layers) = (best("GPF", true), best("GPF, layers", false));
    let ours = format!("{field:.3} and {layers:.3}");
    run.holds("mean field above layers", ".183 and .147", ours, layers < field);
    Ok(())
}

fn by_time(run: &mut Run<'_>) -> Drawn {
    let setting = Setting::new(run)?;
    let all = setting.of_rank(5, 10)?;
    let mut series = [Vec::new(), Vec::new()];
    let mut curve = Vec::new();
    for (colour, found) in all.iter().enumerate() {
        let mut lines = [Vec::new(), Vec::new()];
        for (seconds, p) in &found.looks {
            let scores = setting.scores(p)?;
            lines[0].push((*seconds, 1.0 - scores[1]));
            lines[1].push((*seconds, scores[0]));
        }
        if found.name == "GPF, layers" {
            curve.clone_from(&lines[1]);
        }
        // a single look is a point
        let kind = if found.looks.len() > 1 { Kind::Line } else { Kind::Dots };
        for (series, line) in series.iter_mut().zip(lines) {
            series.push(Series::new(found.name.clone(), kind, colour, line));
        }
    }
    let last = curve.last().map_or(f64::NAN, |p| p.1);
    let least = curve.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let ours = format!("{last:.3} at the end, {least:.3} at best");
    run.holds("NLL of GPF, layers", "falls and stays", ours, last <= least + 0.01);
    let panels = series.into_iter().zip(["error", "NLL"]).map(|(series, y)| Panel {
        title: format!("rank 5: {y}"),
        x: Axis::new("seconds").log(),
        y: Axis::new(y).log(),
        series,
    });
    run.figure("", 2, &panels.collect::<Vec<_>>())
}

fn reliability(run: &mut Run<'_>) -> Drawn {
    let setting = Setting::new(run)?;
    let all = setting.of_rank(5, 1)?;
    let mut table = Table::new("", &["method", "ECE"]);
    let (mut series, mut eces) = (Vec::new(), Vec::new());
    series.push(Series::new("", Kind::Thin, 7, vec![(0.0, 0.0), (1.0, 1.0)]));
    for (colour, found) in all.iter().enumerate() {
        let Some((_, p)) = found.looks.last() else { continue };
        let ece = setting.scores(p)?[2];
        table.row(vec![found.name.clone(), format!("{ece:.3}")]);
        eces.push((found.name.clone(), ece));
        let (mut counts, mut right) = ([0.0; 10], [0.0; 10]);
        for (i, class) in setting.classes.iter().enumerate() {
            let best = (0..10).max_by(|a, b| p[(i, *a)].total_cmp(&p[(i, *b)])).unwrap_or(0);
            let bin = ((10.0 * p[(i, best)]) as usize).min(9);
            counts[bin] += 1.0;
            right[bin] += f64::from(u8::from(best as f64 == *class));
        }
        let seen = (0..10).filter(|k| counts[*k] >= 10.0);
        let points = seen.map(|k| (0.1 * k as f64 + 0.05, right[k] / counts[k])).collect();
        series.push(Series::new(found.name.clone(), Kind::Line, colour, points));
    }
    run.table(table);
    let of = |name: &str| eces.iter().find(|own| own.0 == name).map_or(f64::NAN, |own| own.1);
    let ours = format!("{:.3}", of("GPF"));
    run.holds("ECE of GPF", "calibrated", ours, of("GPF") < 0.05);
    let ours = format!("{:.3} against {:.3}", of("ELRGVI"), of("GPF"));
    run.holds(
        "ELRGVI is worse calibrated",
        "far from the diagonal",
        ours,
        of("ELRGVI") > of("GPF"),
    );
    let (x, y) =
        (Axis::new("confidence").from_to(0.0, 1.0), Axis::new("accuracy").from_to(0.0, 1.0));
    run.figure("", 1, &[Panel { title: "rank 5".into(), x, y, series }])
}
