//! Figure 7.6: variational Gibbs against other inference with inducing points, by time.

use crate::thesis::augmented::{above_the_median, folds_of};
use crate::thesis::curves::{Point, averaged, cells, end, panels, point, sooner};
use sparsegp::fit::{Dataset, FitOptions, Standardise};
use sparsegp::samplers::gibbs::GibbsOptions;
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{BLANK, Body, Data, Entry, Run, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "more-figure7.6",
    paper: "more",
    item: "Figure 7.6",
    shows: "NLL and error by time of CAVI, VI-Gibbs and HMC on Magic Telescope",
    data: &[Data::Substitute { of: "Magic Telescope", by: "kin40k, above its median or below" }],
    protocol: "a tenth of the rows to predict, in turn; logistic likelihood, squared exponential with ℓ = 2 and variance 4, M = 50 \
               by k-means, hyperparameters fixed; augmented VI is `cavi`, standard VI `svgp` by L-BFGS, VI-Gibbs `gibbs-sparse` and \
               VI-HMC `nuts-sparse`; whole runs of growing length",
    scaled: "another table; paths without U-turns for HMC of fixed length",
    rule: "the last NLL of VI-Gibbs is at most 0.002 above those of both kinds of VI; VI-Gibbs is within 0.01 of the last NLL of \
           VI-HMC, and of that of standard VI, in less time than these",
    body: Body::Program(run),
    ..BLANK
};

const METHODS: [(&str, &str); 4] = [
    ("augmented VI", "cavi"),
    ("standard VI", "svgp"),
    ("VI-Gibbs", "gibbs-sparse"),
    ("VI-HMC", "nuts-sparse"),
];

/// A run of a method: so many iterations, or draws.
fn options(method: &str, length: usize, seed: u64) -> FitOptions {
    let mut options = FitOptions {
        kernel: "rbf(ard=false, lengthscales=2, variance=4)".into(),
        likelihood: Some("bernoulli(link=logit)".into()),
        mean: Some("zero".into()),
        method: method.into(),
        inducing: Some(50),
        freeze: vec!["kernel".into(), "inducing".into()],
        pilot: 0,
        seed,
        batches: None,
        gibbs: GibbsOptions {
            chains: 1,
            draws: length,
            burn_in: (length / 4).max(1),
            ..GibbsOptions::default()
        },
        ..FitOptions::default()
    };
    options.train.max_iterations = match method {
        "cavi" | "svgp" => length,
        // chains start at q, of which they need only the neighbourhood
        _ => 1,
    };
    options
}

fn run(run: &mut Run<'_>) -> Drawn {
    let rows = run.sized("rows", [300, 3000, 6000, 19_020]);
    let count = run.sized("folds", [1, 2, 3, 10]);
    let lengths: [&[usize]; 2] = match run.size([0, 1, 2, 2]) {
        0 => [&[2], &[8]],
        1 => [&[1, 3, 10, 30, 100], &[10, 30, 100, 300]],
        _ => [&[1, 3, 10, 30, 100, 300], &[10, 30, 100, 300, 1000]],
    };
    run.smaller("`kin40k` for Magic Telescope");
    let splits = folds_of(&above_the_median(load("kin40k", false)), rows, 10, run.seed())?;
    let mut found: Vec<Vec<Point>> = Vec::new();
    let mut rows = Table::new("", &["method", "length", "seconds", "error", "NLL"]);
    for (name, method) in METHODS {
        let own_lengths = lengths[usize::from(method.ends_with("-sparse"))];
        let mut each = Vec::new();
        for (training, test) in &splits[..count] {
            let scaling =
                Standardise { inputs: true, targets: false, robust: false, constants: true };
            let dataset = Dataset::from_loaded(training.clone(), scaling)?;
            let own = own_lengths.iter();
            let own =
                own.map(|length| point(&dataset, test, &options(method, *length, run.seed())));
            each.push(own.collect::<sparsegp::Result<Vec<Point>>>()?);
        }
        let curve = averaged(&each);
        for (length, point) in own_lengths.iter().zip(&curve) {
            rows.row([&[name.to_owned(), length.to_string()][..], &cells(point)].concat());
        }
        found.push(curve);
    }
    run.table(rows);
    let [augmented, standard, gibbs, hmc] = [0, 1, 2, 3].map(|k| end(&found[k]).nll);
    run.holds(
        "last NLL of VI-Gibbs",
        "a slightly better optimum than VI",
        format!(
            "{gibbs:.4}; augmented VI {augmented:.4}, standard VI {standard:.4}, VI-HMC {hmc:.4}"
        ),
        gibbs <= augmented.min(standard) + 0.002,
    );
    for rival in [1, 3] {
        let (ours, holds) = sooner(&found[2], &found[rival], |p| p.nll, 0.01, 1.0);
        let what = format!("time to the NLL of {}", METHODS[rival].0);
        run.holds(&what, "outperforms methods on the original model", ours, holds);
    }
    run.figure("", 2, &panels("", &METHODS.map(|method| method.0), &found))
}
