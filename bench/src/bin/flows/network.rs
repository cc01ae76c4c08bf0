//! A Bayesian network with two hidden layers on ten thousand digits.

use crate::common::{Drawn, MEDIAN};
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
use sparsegp_bench::page::{head, normal, number, row};
use std::time::Instant;

/// Negative log likelihood, accuracy and calibration error of probabilities.
fn judged(probabilities: &Mat<f64>, classes: &[usize]) -> sparsegp::Result<[f64; 3]> {
    let mut metrics = ClassMetrics::new(10, ClassOptions::default())?;
    let classes: Vec<f64> = classes.iter().map(|c| *c as f64).collect();
    metrics.add(&classes, probabilities.as_ref(), None)?;
    let scores = metrics.finish()?;
    Ok([scores.log_loss, scores.accuracy, scores.ece])
}

struct Setting {
    network: Network,
    mode: Vec<f64>,
    test: Mat<f64>,
    classes: Vec<usize>,
    steps: usize,
}

impl Setting {
    /// Advances a solver, and prints how its draws predict.
    fn row<S: Solver>(
        &self,
        (name, of): (&str, &str),
        mut solver: S,
        draws: &dyn Fn(&S) -> sparsegp::Result<Mat<f64>>,
    ) -> Drawn {
        let mut network = self.network.clone();
        let clock = Instant::now();
        let mut lost = None;
        for step in 0..self.steps {
            match solver.advance(&mut network, step) {
                Err(error) if error.is_recoverable() => {
                    lost = Some(step);
                    break;
                }
                Err(error) => return Err(error.into()),
                Ok(_) if !solver.is_finite() => {
                    lost = Some(step);
                    break;
                }
                Ok(_) => {}
            }
        }
        let seconds = clock.elapsed().as_secs_f64();
        if let Some(step) = lost {
            row(&[
                name.into(),
                of.into(),
                format!("lost at step {step}"),
                String::new(),
                String::new(),
                String::new(),
            ]);
            return Ok(());
        }
        let theta = draws(&solver)?;
        let probabilities = self.network.probabilities(theta.as_ref(), self.test.as_ref())?;
        self.print((name, of), &probabilities, 1e3 * seconds / self.steps as f64)
    }

    fn print(&self, (name, of): (&str, &str), probabilities: &Mat<f64>, each: f64) -> Drawn {
        let [nll, accuracy, ece] = judged(probabilities, &self.classes)?;
        let numbers = [nll, accuracy, ece].map(|v| format!("{v:.3}"));
        let mut cells = vec![name.to_owned(), of.to_owned()];
        cells.extend(numbers);
        cells.push(format!("{each:.0}"));
        row(&cells);
        Ok(())
    }
}

/// All methods on the digits.
pub fn classes(rest: &[String]) -> Drawn {
    let full = number(rest, "--full", 0.0) > 0.0;
    let hidden = number(rest, "--hidden", if full { 200.0 } else { 50.0 }) as usize;
    let steps = number(rest, "--steps", if full { 5001.0 } else { 1000.0 }) as usize;
    let train = number(rest, "--rows", 8000.0) as usize;
    let (rate, batch, draws) = (0.01, 128, 100);
    let table = load("mnist-t10k", true);
    let n = table.x.nrows();
    let order = rng::permutation(&mut rng::stream(0, "flows/digits"), n, n);
    let x = |from: usize, to: usize| {
        Mat::from_fn(to - from, 784, |i, q| table.x[(order[from + i], q)] / 255.0)
    };
    let y = |from: usize, to: usize| -> Vec<usize> {
        (from..to).map(|i| table.y[(order[i], 0)] as usize).collect()
    };
    let sizes = vec![784, hidden, hidden, 10];
    let network =
        Network::new(sizes.clone(), x(0, train), y(0, train), 1.0)?.in_batches(batch, 0)?;
    let dim = network.dim();
    println!(
        "\n### Digits: 784–{hidden}–{hidden}–10, {dim} weights, {train} rows to learn from, {} to predict, {steps} steps of {batch} rows",
        n - train
    );
    // where everything starts: a mode
    let mut rng = rng::stream(1, "flows/network");
    let mut begin = Vec::with_capacity(dim);
    for pair in sizes.windows(2) {
        let size = (pair[0] as f64).sqrt().recip();
        begin.extend((0..pair[1] * pair[0]).map(|_| size * normal(&mut rng)));
        begin.extend(vec![0.0; pair[1]]);
    }
    let clock = Instant::now();
    let epochs = train.div_ceil(batch);
    let of_map = MapOptions { steps: 20 * epochs, rate: 1e-3, ..MapOptions::default() };
    let mode = map(&mut network.clone(), &begin, &of_map)?.position;
    let each = 1e3 * clock.elapsed().as_secs_f64() / (20 * epochs) as f64;
    let setting = Setting {
        network: network.clone(),
        mode: mode.clone(),
        test: x(train, n),
        classes: y(train, n),
        steps,
    };
    head(&["method", "q", "NLL", "accuracy", "ECE", "ms a step"]);
    let one = Mat::from_fn(dim, 1, |i, _| mode[i]);
    let probabilities = network.probabilities(one.as_ref(), setting.test.as_ref())?;
    setting.print(("MAP", "a point"), &probabilities, each)?;
    let draw = || rng::stream(2, "flows/draws");
    let rule = Rule::rms_prop();
    // noise of a tenth of the prior's: as wide as it, no particle is near a mode
    let spread = number(rest, "--spread", 0.1);
    for rank in [5, 10] {
        let cloud =
            |seed: u64| Particles::around(&setting.mode, &vec![spread; dim], rank + 1, seed);
        let options = |blocks: Blocks| GpfOptions {
            mean_rate: rate,
            spread_rate: rate,
            blocks,
            rule,
            ..GpfOptions::default()
        };
        for (of, blocks) in [
            (format!("rank {rank}"), Blocks::Whole),
            (format!("layers of rank {rank}"), network.layers()),
        ] {
            let gpf = Gpf::new(cloud(rank as u64)?, options(blocks))?;
            setting.row(("GPF", &of), gpf, &|own| Ok(own.particles().x().to_owned()))?;
        }
        let start = cloud(7)?.deviations();
        let factor = Mat::from_fn(dim, rank, |i, k| start[(i, k)] / (rank as f64).sqrt());
        let of_parameters = GfOptions {
            mean_rate: rate * 0.1,
            spread_rate: rate * 0.1,
            rule,
            draws: rank + 1,
            ..GfOptions::default()
        };
        let gf = Gf::new(setting.mode.clone(), Factor::Whole(factor), of_parameters)?;
        setting.row(
            ("GF", &format!("rank {rank}")),
            gf,
            &|own| Ok(own.draw(draws, &mut draw())),
        )?;
        let options = SvgdOptions { kernel: MEDIAN, rate, rule, ..SvgdOptions::default() };
        let svgd = Svgd::new(cloud(11)?, options)?;
        let of = format!("{} particles", rank + 1);
        setting.row(("SVGD", &of), svgd, &|own| Ok(own.particles().x().to_owned()))?;
        let options = SwagOptions { rate: 0.01, momentum: 0.9, every: 10, keep: rank, rows: train };
        let swag = Swag::new(setting.mode.clone(), options)?;
        setting.row(("SWAG", &format!("rank {rank}")), swag, &|own| {
            own.moments().draw(draws, &mut draw())
        })?;
        let descent =
            DescentOptions { rate: rate * 0.1, rule, draws: 1, ..DescentOptions::default() };
        let mut elrgvi = Elrgvi::new(&network, &setting.mode, 0.05, rank, descent)?;
        let (mut own, clock) = (network.clone(), Instant::now());
        let mut failed = None;
        for step in 0..steps {
            if let Err(error) = elrgvi.advance(&mut own, step) {
                failed = Some((step, error));
                break;
            }
        }
        let each = 1e3 * clock.elapsed().as_secs_f64() / steps as f64;
        match failed {
            Some((step, error)) if error.is_recoverable() => {
                println!("| ELRGVI | rank {rank} | lost at step {step} | | | |")
            }
            Some((_, error)) => return Err(error.into()),
            None => {
                let found = elrgvi.probabilities(setting.test.as_ref(), draws, &mut draw())?;
                setting.print(("ELRGVI", &format!("layers of rank {rank}")), &found, each)?;
            }
        }
    }
    let cloud = Particles::around(&setting.mode, &vec![spread; dim], 10, 3)?;
    let options = GpfOptions {
        mean_rate: rate,
        spread_rate: rate,
        blocks: Blocks::Diagonal,
        rule,
        ..GpfOptions::default()
    };
    setting.row(("GPF", "mean field"), Gpf::new(cloud, options)?, &|own| {
        let (mean, variances) = (own.particles().mean(), own.particles().variances());
        let mut rng = draw();
        Ok(Mat::from_fn(dim, draws, |i, _| mean[i] + variances[i].sqrt() * normal(&mut rng)))
    })?;
    let of_parameters = GfOptions {
        mean_rate: rate * 0.1,
        spread_rate: rate * 0.1,
        rule,
        draws: 10,
        ..GfOptions::default()
    };
    let gf = Gf::new(setting.mode.clone(), Factor::Diagonal(vec![spread; dim]), of_parameters)?;
    setting.row(("GF", "mean field"), gf, &|own| Ok(own.draw(draws, &mut draw())))?;
    let descent = DescentOptions { rate: rate * 0.1, rule, draws: 10, ..DescentOptions::default() };
    let dsvi = Dsvi::new(setting.mode.clone(), Root::Diagonal(vec![spread; dim]), descent)?;
    setting.row(("DSVI", "mean field"), dsvi, &|own| Ok(own.draw(draws, &mut draw())))
}
