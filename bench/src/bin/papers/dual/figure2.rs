//! Figure 2: what an M-step makes of every old variance, and where EM goes.

use super::em::bound;
use super::toy::{NATURAL, PLAIN, WHITENED, at, best_variance, sinc, solve, with};
use sparsegp::linalg::Mat;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{
    Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table, contours,
};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "dual-figure2",
    paper: "dual",
    item: "Figure 2",
    shows: "what an M-step makes of every old variance, and the path of EM over the bound",
    data: &[Data::Simulated("the noisy sinc of Figure 1")],
    protocol: "as for Figure 1, left; EM from the variance 2.5, E and M to convergence",
    rule: "by t-SVGP EM is within 5 % of the optimum after two rounds at most; by either q after more than five",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    let (data, model) = sinc(run.seed())?;
    let side = run.size([4, 24, 40, 40]);
    let rounds = run.size([2, 12, 12, 12]);
    let grid: Vec<f64> = (0..side).map(|i| 0.1 + 2.6 * i as f64 / (side - 1) as f64).collect();
    let shapes = [NATURAL, WHITENED, PLAIN];
    // the best variance of all: EM of sites, repeated until it stays
    let mut model_at = at(&with(&NATURAL, &model, 100)?, 0.6)?;
    let mut optimum = 0.6;
    for _ in 0..run.size([1, 20, 20, 20]) {
        solve(&mut model_at, &data)?;
        optimum = best_variance(&model_at, &data)?;
        model_at = at(&model_at, optimum)?;
    }
    let (mut top, mut bottom) = (Vec::new(), Vec::new());
    let mut table = Table::new("Variance by round", &["form", "path", "rounds"]);
    let mut needed = Vec::new();
    for shape in &shapes {
        let (mut moves, mut values) = (Vec::new(), Mat::zeros(side, side));
        for (i, old) in grid.iter().enumerate() {
            let mut solved = at(&with(shape, &model, 100)?, *old)?;
            solve(&mut solved, &data)?;
            moves.push((*old, best_variance(&solved, &data)?));
            for (j, new) in grid.iter().enumerate() {
                values[(i, j)] = bound(&at(&solved, *new)?, &data)?;
            }
        }
        let mut walking = at(&with(shape, &model, 100)?, 2.5)?;
        let mut path = vec![2.5];
        for _ in 0..rounds {
            solve(&mut walking, &data)?;
            let best = best_variance(&walking, &data)?;
            walking = at(&walking, best)?;
            path.push(best);
        }
        let there = path.iter().position(|v| (v / optimum).ln().abs() < 0.05);
        let words = there.map_or(format!("more than {rounds}"), |r| r.to_string());
        let shown: Vec<String> = path.iter().take(6).map(|v| format!("{v:.3}")).collect();
        table.row(vec![shape.name.into(), shown.join(", "), words]);
        needed.push(there.unwrap_or(usize::MAX));
        let diagonal = vec![(grid[0], grid[0]), (grid[side - 1], grid[side - 1])];
        let series = vec![
            Series::new("", Kind::Thin, 7, diagonal),
            Series::new("θ* of the M-step", Kind::Line, 0, moves),
        ];
        let (x, y) = (Axis::new("θ old"), Axis::new("θ*").from_to(0.0, 2.8));
        top.push(Panel { title: shape.name.into(), x, y, series });
        let most = (0..side).flat_map(|i| (0..side).map(move |j| (i, j)));
        let most = most.map(|at| values[at]).fold(f64::NEG_INFINITY, f64::max);
        let levels = [0.02, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0].map(|below| most - below);
        // E-steps go along the diagonal, M-steps up
        let steps = path.windows(2).flat_map(|pair| [(pair[0], pair[0]), (pair[0], pair[1])]);
        let series = vec![
            Series::new("", Kind::Segments, 6, contours(&grid, &grid, &values, &levels)),
            Series::new("EM", Kind::Line, 1, steps.collect()),
        ];
        let (x, y) = (Axis::new("θ old").from_to(0.0, 2.8), Axis::new("θ").from_to(0.0, 2.8));
        bottom.push(Panel { title: String::new(), x, y, series });
    }
    run.table(table);
    run.note(format!("The best variance is {optimum:.4}."));
    let words = |count: usize| match count {
        usize::MAX => format!("more than {rounds} rounds"),
        1 => "one round".to_owned(),
        count => format!("{count} rounds"),
    };
    run.holds("t-SVGP", "two rounds", words(needed[0]), needed[0] <= 2);
    run.holds("q whitened", "more than five rounds", words(needed[1]), needed[1] > 5);
    run.holds("q", "more than five rounds", words(needed[2]), needed[2] > 5);
    top.extend(bottom);
    run.figure("", 3, &top)
}
