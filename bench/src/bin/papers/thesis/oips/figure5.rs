//! Figure 5: what the chosen points leave.

use super::points::{chosen, uniform};
use sparsegp::inducing::select::oips::trace_bound;
use sparsegp::linalg::{Cholesky, Jitter, symmetric_eigen};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};
use sparsegp_bench::streams::{covariances, rbf};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "oips-figure5",
    paper: "oips",
    item: "Figure 5",
    shows: "what the chosen points leave, and bounds on it",
    data: &[Data::Simulated("rows uniform in a cube of three inputs")],
    protocol: "ρ = 0.7, ℓ = 0.3, N = 50 to 1000",
    scaled: "the corrected bounds beside that of Theorem 2 as printed (errata), and the mean of a k-DPP (Burt et al.)",
    rule: "at every N Frobenius norm ≤ trace ≤ the corrected bounds ≤ that of Theorem 2",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    let most = run.sized("rows", [100, 1000, 1000, 1000]);
    let (rho, length) = (0.7, 0.3);
    let kernel = rbf(1.0, length, 3);
    let head =
        ["N", "M", "Frobenius", "trace", "(N − M)(1 − ρ²)", "by Gershgorin", "as printed", "k-DPP"];
    let mut table = Table::new("", &head);
    let mut curves: [Vec<(f64, f64)>; 5] = Default::default();
    let mut ordered = true;
    for n in [50, 100, 200, 400, 700, 1000].into_iter().filter(|n| *n <= most) {
        let x = uniform(n, 3, run.seed() + 11);
        let z = chosen(&*kernel, x.as_ref(), rho)?;
        let m = z.nrows();
        let k = covariances(&*kernel, x.as_ref(), x.as_ref());
        let kuf = covariances(&*kernel, z.as_ref(), x.as_ref());
        let kuu = covariances(&*kernel, z.as_ref(), z.as_ref());
        let factor = Cholesky::new(kuu.as_ref(), Jitter::Absolute(0.0), "Kuu")?;
        let rest = &k - kuf.transpose() * factor.solve(kuf.as_ref());
        let trace: f64 = (0..n).map(|i| rest[(i, i)]).sum();
        let (rows, m1) = ((n - m) as f64, (m - 1) as f64);
        let by = |size: f64| rows * (1.0 - rho * rho / (1.0 + size * rho));
        let (values, _) = symmetric_eigen(k.as_ref())?;
        let left: f64 = values.iter().take(n - m).sum();
        let numbers = [
            rest.norm_l2(),
            trace,
            trace_bound(1.0, n, m, rho),
            by(m1),
            by(m as f64 * m1),
            (m + 1) as f64 * left,
        ];
        let cells = numbers.iter().map(|v| format!("{v:.2}")).collect();
        table.row([vec![n.to_string(), m.to_string()], cells].concat());
        ordered &= numbers[..5].windows(2).all(|pair| pair[0] <= pair[1]);
        for (curve, value) in curves.iter_mut().zip([0, 1, 2, 4, 5].map(|i| numbers[i])) {
            curve.push((n as f64, value));
        }
    }
    run.table(table);
    let ours = if ordered { "holds at every N" } else { "fails" };
    run.holds("order of the bounds", "the bound of Theorem 2 holds", ours, ordered);
    let names = ["Frobenius norm", "trace", "bound, corrected", "bound, as printed", "k-DPP, mean"];
    let series = names.into_iter().zip(curves).enumerate();
    let series =
        series.map(|(k, (name, points))| Series::new(name, Kind::Line, k, points)).collect();
    let (x, y) = (Axis::new("N").log(), Axis::new("‖K − Q‖ and bounds").log());
    run.figure("", 1, &[Panel { title: "what points leave".into(), x, y, series }])
}
