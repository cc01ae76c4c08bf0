//! Reference vectors: numbers from independent programs, one JSON file per case.
//!
//! The folder is `testdata/reference` of the repository, or the one that the environment variable
//! `SPARSEGP_REFERENCE` names (the same layout, FAMILY/NAME.json; other numbers, possibly only some
//! of the files). Each file is run by the check that claims its FAMILY/NAME in [`CLAIMS`]; a file that
//! nobody claims fails the run unless it matches [`NOT_BUILT`]. Checks go through the fields that a
//! file has and fail on one they do not know, so that nothing is skipped in silence.

#[path = "reference/augmentation.rs"]
mod augmentation;
#[path = "reference/auxiliary.rs"]
mod auxiliary;
#[path = "reference/batch.rs"]
mod batch;
#[path = "reference/bounds.rs"]
mod bounds;
#[path = "reference/collapsed.rs"]
mod collapsed;
#[path = "reference/convolutional.rs"]
mod convolutional;
#[path = "reference/deep.rs"]
mod deep;
#[path = "reference/deep_more.rs"]
mod deep_more;
#[path = "reference/deep_problem.rs"]
mod deep_problem;
#[path = "reference/deep_released.rs"]
mod deep_released;
#[path = "reference/dual.rs"]
mod dual;
#[path = "reference/flow.rs"]
mod flow;
#[path = "reference/flow_compared.rs"]
mod flow_compared;
#[path = "reference/flow_targets.rs"]
mod flow_targets;
#[path = "reference/gibbs.rs"]
mod gibbs;
#[path = "reference/gpflow.rs"]
mod gpflow;
#[path = "reference/hetero_augmented.rs"]
mod hetero_augmented;
#[path = "reference/hmc.rs"]
mod hmc;
#[path = "reference/inverse_free.rs"]
mod inverse_free;
#[path = "reference/kernel.rs"]
mod kernel;
#[path = "reference/latent.rs"]
mod latent;
#[path = "reference/likelihood.rs"]
mod likelihood;
#[path = "reference/likelihood_multi.rs"]
mod likelihood_multi;
#[path = "reference/multiclass.rs"]
mod multiclass;
#[path = "reference/observed.rs"]
mod observed;
#[path = "reference/oips.rs"]
mod oips;
#[path = "reference/online.rs"]
mod online;
#[path = "reference/probe.rs"]
mod probe;
#[path = "reference/problem.rs"]
mod problem;
#[path = "reference/relaxed.rs"]
mod relaxed;
#[path = "reference/selection.rs"]
mod selection;
#[path = "reference/snelson.rs"]
mod snelson;
#[path = "reference/streaming.rs"]
mod streaming;
#[path = "reference/streaming_power.rs"]
mod streaming_power;
#[path = "reference/support.rs"]
mod support;
#[path = "reference/svgp.rs"]
mod svgp;
#[path = "reference/tabulated.rs"]
mod tabulated;
#[path = "reference/trained.rs"]
mod trained;
#[path = "reference/uncollapsed.rs"]
mod uncollapsed;
#[path = "reference/vgp.rs"]
mod vgp;

use serde_json::Value;
use std::path::{Path, PathBuf};
use support::{Outcome, Report};

/// What runs one file: its contents, its folder (for files that refer to others) and where
/// comparisons go.
type Check = fn(&Value, &Path, &mut Report) -> Outcome;

/// Tolerance of the families that state none.
const PLAIN: f64 = 1e-8;
/// GPyTorch's distances carry noise of about 1e-7 (README of the family).
const NOISY: f64 = 3e-7;

/// What the augmentation files are good to.
const SHARP: f64 = 1e-9;
/// Values with all digits of a double.
const EXACT: f64 = 1e-12;
/// What one step of a flow is good to.
const STEPS: f64 = 1e-11;
/// GPflow's angles between coincident points are of the order √1e-15, and order 0 is linear in them
/// (README of the family: about 1e-7).
const ARC_COSINE: f64 = 1e-7;

/// Who runs what, and the tolerance where the file states none.
const CLAIMS: &[(&str, Check, f64)] = &[
    ("gpflow/kernel_rbf*", kernel::check, PLAIN),
    ("gpflow/kernel_matern*", kernel::check, PLAIN),
    ("gpflow/kernel_linear*", kernel::check, PLAIN),
    ("gpflow/kernel_constant", kernel::check, PLAIN),
    ("gpflow/kernel_white", kernel::check, PLAIN),
    ("gpflow/kernel_sum*", kernel::check, PLAIN),
    ("gpflow/kernel_product", kernel::check, PLAIN),
    ("gpflow/kernel_nested", kernel::check, PLAIN),
    ("gpflow/kernel_exponential*", kernel::check, PLAIN),
    ("gpflow/kernel_rationalquadratic*", kernel::check, PLAIN),
    ("gpflow/kernel_periodic_*", kernel::check, PLAIN),
    ("gpflow/kernel_cosine*", kernel::check, PLAIN),
    ("gpflow/kernel_polynomial*", kernel::check, PLAIN),
    ("gpflow/kernel_arccosine0", kernel::check, ARC_COSINE),
    ("gpflow/kernel_arccosine1", kernel::check, PLAIN),
    ("gpflow/kernel_arccosine2", kernel::check, PLAIN),
    ("gpflow/kernel_coregion", kernel::check, PLAIN),
    ("gpflow/kernel_changepoints", kernel::check, PLAIN),
    ("additive/kernel_*", kernel::check, EXACT),
    ("gpflow/gpr_rbf", gpflow::exact, PLAIN),
    ("gpflow/gpr_matern*", gpflow::exact, PLAIN),
    ("gpflow/gpr_sum", gpflow::exact, PLAIN),
    ("gpflow/gpr_periodic_product", gpflow::exact, PLAIN),
    ("gpflow/gpr_two_outputs", gpflow::exact, PLAIN),
    ("gpflow/gpr_priors", gpflow::exact, PLAIN),
    ("gpflow/sgpr_*", gpflow::sparse, PLAIN),
    ("gpflow/cross_gpytorch_gpr_rbf", gpflow::exact, PLAIN),
    ("gpflow/cross_gpytorch_gpr_matern12", gpflow::exact, NOISY),
    ("gpflow/cross_sklearn_gpr_*", gpflow::exact, PLAIN),
    ("gpflow/cross_gpjax_sgpr_*", gpflow::sparse, PLAIN),
    ("gpflow/cross_gpjax_svgp_*", svgp::check, PLAIN),
    ("gpflow/cross_gpytorch_svgp_*", svgp::check, PLAIN),
    ("gpflow/svgp_*", svgp::check, PLAIN),
    ("gpflow/multioutput_shared_*", svgp::check, PLAIN),
    ("gpflow/multioutput_lmc_*", svgp::check, PLAIN),
    ("gpflow/multioutput_separate_*", svgp::check, PLAIN),
    ("gpflow/natgrad_*", svgp::natural, PLAIN),
    ("gpflow/vgp_bernoulli_*", vgp::check, PLAIN),
    ("gpflow/vgp_gaussian", vgp::check, PLAIN),
    ("gpflow/vgp_poisson_*", vgp::check, PLAIN),
    ("gpflow/vgp_studentt", vgp::check, PLAIN),
    ("gpflow/vgp_opper_archambeau_*", vgp::opper_archambeau, PLAIN),
    ("gpflow/likelihood_bernoulli_*", likelihood::check, PLAIN),
    ("gpflow/likelihood_beta_*", likelihood::check, PLAIN),
    ("gpflow/likelihood_exponential_*", likelihood::check, PLAIN),
    ("gpflow/likelihood_gamma_*", likelihood::check, PLAIN),
    ("gpflow/likelihood_gaussian", likelihood::check, PLAIN),
    ("gpflow/likelihood_ordinal", likelihood::check, PLAIN),
    ("gpflow/likelihood_poisson_*", likelihood::check, PLAIN),
    ("gpflow/likelihood_studentt", likelihood::check, PLAIN),
    ("inverse_free/likelihoods", likelihood::expectations, PLAIN),
    ("inverse_free/bounds_*", inverse_free::bounds, PLAIN),
    ("inverse_free/conv_kernel", deep_released::conv, PLAIN),
    ("inverse_free/deep_gp", deep_released::deep, PLAIN),
    ("inverse_free/exact_gp_identity", inverse_free::exact_identity, PLAIN),
    ("inverse_free/hutchinson", inverse_free::hutchinson, PLAIN),
    ("inverse_free/implied_covariance", inverse_free::implied, PLAIN),
    ("inverse_free/index", inverse_free::index, PLAIN),
    ("inverse_free/kernel_se_ard", inverse_free::kernel_gradients, PLAIN),
    ("inverse_free/multiclass_robustmax", inverse_free::bounds, PLAIN),
    ("inverse_free/natural_gradient", inverse_free::natural_gradient, PLAIN),
    ("inverse_free/ordering", inverse_free::ordering, PLAIN),
    ("inverse_free/schedules", inverse_free::schedules, PLAIN),
    ("inverse_free/stopping_criteria", inverse_free::stopping, PLAIN),
    ("inverse_free/trajectory_l_vs_r", relaxed::trajectory, PLAIN),
    ("inverse_free/w_type", inverse_free::whitened, PLAIN),
    ("gpflow/relaxed_svgp_*", relaxed::check, PLAIN),
    ("gpflow/likelihood_hetero_*", likelihood_multi::check, PLAIN),
    ("gpflow/likelihood_softmax_*", likelihood_multi::check, PLAIN),
    ("gpflow/likelihood_multiclass", likelihood_multi::check, PLAIN),
    ("bounds/collapsed", collapsed::check, PLAIN),
    ("bounds/identities", bounds::identities, PLAIN),
    ("bounds/predict", bounds::predict, PLAIN),
    ("bounds/ill_conditioned", bounds::ill_conditioned, PLAIN),
    ("bounds/snelson", snelson::check, PLAIN),
    ("bounds/streaming", streaming::check, PLAIN),
    ("bounds/gplvm", latent::gplvm, PLAIN),
    ("bounds/psi_*", latent::psi, PLAIN),
    ("bounds/svgp_gaussian", uncollapsed::gaussian, PLAIN),
    ("bounds/spherical_v", uncollapsed::spherical, PLAIN),
    ("bounds/multilatent_v", uncollapsed::several, PLAIN),
    ("dual/elbo_grad", dual::gradients, PLAIN),
    ("dual/estep", dual::steps, PLAIN),
    ("dual/gaussian_sgpr", dual::gaussian, PLAIN),
    ("dual/mstep_toy", dual::toy, PLAIN),
    ("dual/natgrad", dual::natural, PLAIN),
    ("dual/partial_em", dual::partial_em, PLAIN),
    ("dual/softmax", dual::softmax, PLAIN),
    ("dual/tvgp", dual::full, PLAIN),
    ("gpflow/tsvgp_*", dual::programs, PLAIN),
    ("gpflow/cross_gpjax_tsvgp_*", dual::programs, PLAIN),
    ("augmentation/diagnostics", auxiliary::settled, SHARP),
    ("augmentation/laplace_inversion", auxiliary::laplace_inversion, SHARP),
    ("augmentation/polyagamma", auxiliary::polya_gamma, SHARP),
    ("augmentation/likelihoods", augmentation::sites, SHARP),
    ("augmentation/cavi_full", augmentation::full, SHARP),
    ("augmentation/cavi_sparse", augmentation::sparse, SHARP),
    ("augmentation/adjoints", augmentation::gradients, SHARP),
    ("augmentation/gibbs", gibbs::posteriors, SHARP),
    ("augmentation/variational_gibbs", gibbs::sparse, SHARP),
    ("augmentation/hmc", hmc::check, SHARP),
    ("augmentation/heteroscedastic", hetero_augmented::check, SHARP),
    ("augmentation/multiclass", multiclass::check, SHARP),
    ("streaming/stream_gaussian_fixed", online::fixed, SHARP),
    ("streaming/stream_gaussian_changing", online::changing, SHARP),
    ("streaming/stream_bernoulli", online::bernoulli, SHARP),
    ("streaming/online_adjoints", online::adjoints, SHARP),
    ("streaming/near_singular", online::near_singular, SHARP),
    ("streaming/oips", oips::check, SHARP),
    ("streaming/selection", selection::check, SHARP),
    ("streaming/svi_comparison", selection::svi, SHARP),
    ("particle_flow/gpf_gaussian_full", flow::plain, STEPS),
    ("particle_flow/gpf_natural_mean", flow::natural, STEPS),
    ("particle_flow/gpf_lowrank", flow::plain, STEPS),
    ("particle_flow/gpf_blocks", flow::blocks, STEPS),
    ("particle_flow/gpf_blocks_exact", flow::blocks_exact, STEPS),
    ("particle_flow/gf", flow::parameters, STEPS),
    ("particle_flow/gpf_banana", flow::banana, STEPS),
    ("particle_flow/optimisers", flow::optimisers, STEPS),
    ("particle_flow/gaussian_rates", flow::rates_of_gaussians, STEPS),
    ("particle_flow/gpf_dimwise_run", flow_targets::scaled_runs, STEPS),
    ("particle_flow/logistic", flow_targets::logistic, STEPS),
    ("particle_flow/bnn", flow_targets::network, STEPS),
    ("particle_flow/gp_whitened_target", flow_targets::whitened, STEPS),
    ("particle_flow/baselines", flow_compared::baselines, STEPS),
    ("particle_flow/elrgvi", flow_compared::elrgvi, STEPS),
    ("particle_flow/svgd", flow_compared::svgd, STEPS),
    ("particle_flow/swag", flow_compared::swag, STEPS),
    ("particle_flow/sampling", flow::sampling, STEPS),
    ("convolutional/identities", convolutional::identities, PLAIN),
    ("convolutional/image_layer", convolutional::image_layers, PLAIN),
    ("convolutional/index", convolutional::index, PLAIN),
    ("convolutional/kernel", convolutional::kernels, PLAIN),
    ("convolutional/sum", convolutional::models, PLAIN),
    ("convolutional/svgp_*", convolutional::models, PLAIN),
    ("deep/composition", deep::composition, PLAIN),
    ("deep/dgp_*", deep::models, PLAIN),
    ("deep/identities", deep_more::identities, PLAIN),
    ("deep/index", deep::index, PLAIN),
    ("deep/initial", deep_more::initial, PLAIN),
    ("deep/joint", deep::models, PLAIN),
    ("deep/layer", deep::layers, PLAIN),
    ("deep/mixed", deep::models, PLAIN),
    ("deep/natural", deep_more::natural, PLAIN),
    ("deep/ordering", deep_more::ordering, PLAIN),
    ("deep/quadrature", deep_more::quadrature, PLAIN),
    ("deep/separate", deep::models, PLAIN),
    ("deep/skip", deep::models, PLAIN),
    ("deep/tighter", deep::models, PLAIN),
];

/// Files whose subject is not built yet. Whoever builds it deletes the pattern.
const NOT_BUILT: &[&str] = &[];

/// Whether `name` is of the form `pattern`, where `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| matches(tail, &rest[at..]))
        }),
    }
}

/// Whether a check claims a file, or somebody says that its subject is not built.
fn is_listed(name: &str) -> bool {
    let listed = NOT_BUILT.iter().copied().chain(CLAIMS.iter().map(|(p, ..)| *p));
    listed.into_iter().any(|pattern| matches(pattern, name))
}

#[test]
fn patterns_match_as_they_read() {
    for (pattern, name, expected) in [
        ("dual/*", "dual/softmax", true),
        ("dual/*", "bounds/gplvm", false),
        ("gpflow/cross_*svgp_*", "gpflow/cross_gpjax_tsvgp_u_gaussian", true),
        ("gpflow/cross_*svgp_*", "gpflow/cross_gpjax_sgpr_rbf", false),
        ("gpflow/gpr_sum", "gpflow/gpr_sum", true),
        ("gpflow/gpr_sum", "gpflow/gpr_sums", false),
        ("a*b", "a", false),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}

/// A vector with another scale, that is not a whole number of rows: bound = scale·Σℓ − KL and the
/// slopes of its first part follow the scale.
#[test]
fn scales_need_not_be_whole_numbers_of_rows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/reference/bounds/svgp_gaussian.json");
    let mut json: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let number = |json: &Value| json.as_f64().unwrap();
    let scaled = |json: &Value, by: f64| match json {
        Value::Array(items) if items.iter().all(Value::is_number) => {
            items.iter().map(|v| Value::from(by * number(v))).collect()
        }
        Value::Array(rows) => rows
            .iter()
            .map(|row| {
                row.as_array()
                    .unwrap()
                    .iter()
                    .map(|v| Value::from(by * number(v)))
                    .collect::<Value>()
            })
            .collect(),
        other => Value::from(by * number(other)),
    };
    for case in json["cases"].as_array_mut().unwrap() {
        let (scale, rows) = (2.3, case["idx"].as_array().unwrap().len());
        assert!((scale * rows as f64).fract() != 0.0);
        let ratio = scale / number(&case["scale"]);
        case["scale"] = scale.into();
        for form in ["unwhitened", "whitened"] {
            let out = case[form].as_object_mut().unwrap();
            let kl = number(&out["kl"]);
            out["value"] = (ratio * (number(&out["value"]) + kl) - kl).into();
            for slope in ["noise_bar", "kff_bar"] {
                out[slope] = scaled(&out[slope], ratio);
            }
            // of q, Kuu and hyperparameters the KL has a part too
            out.retain(|name, _| {
                ["value", "kl", "mu", "tau", "d", "noise_bar", "kff_bar"].contains(&name.as_str())
            });
        }
    }
    let mut report = Report::new("scaled", PLAIN);
    uncollapsed::gaussian(&json, Path::new(""), &mut report).unwrap();
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    assert!(report.comparisons > 40, "{}", report.comparisons);
}

/// FAMILY/NAME of every file below `root`, with its path, in order.
fn files(root: &Path) -> Vec<(String, PathBuf)> {
    let read = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|e| {
            panic!("the folder of reference vectors {}: {e}", folder.display())
        });
        entries.map(|entry| entry.expect("a readable entry").path()).collect()
    };
    let text =
        |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().to_string();
    let mut found = Vec::new();
    for family in read(root).into_iter().filter(|p| p.is_dir()) {
        for path in read(&family) {
            if text(path.file_stem()).eq_ignore_ascii_case("readme") {
                continue;
            }
            let stem = match path.extension() {
                Some(e) if e == "json" => path.file_stem(),
                _ => path.file_name(),
            };
            found.push((format!("{}/{}", text(family.file_name()), text(stem)), path));
        }
    }
    found.sort();
    found
}

/// Runs one claimed file.
fn run(name: &str, path: &Path, check: Check, tolerance: f64) -> Report {
    let mut report = Report::new(name, tolerance);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
        let json = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        check(&json, path.parent().unwrap_or(path), &mut report)
    }));
    match outcome {
        Ok(Ok(())) if report.comparisons == 0 && !report.skipped => {
            report.fail("-", "nothing was compared");
        }
        Ok(Ok(())) => {}
        Ok(Err(reason)) => report.fail("-", &reason),
        Err(_) => report.fail("-", "the check panicked (its message is above)"),
    }
    report
}

#[test]
fn reference() {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/reference");
    let chosen = std::env::var_os("SPARSEGP_REFERENCE").map(PathBuf::from);
    let files = files(chosen.as_ref().unwrap_or(&default));
    let mut failures = Vec::new();
    let (mut ran, mut comparisons) = (0, 0);
    for (name, path) in &files {
        let claims: Vec<_> = CLAIMS.iter().filter(|(p, ..)| matches(p, name)).collect();
        let excused = NOT_BUILT.iter().any(|pattern| matches(pattern, name));
        match (claims.as_slice(), excused) {
            ([(_, check, tolerance)], false) => {
                let report = run(name, path, *check, *tolerance);
                println!(
                    "{name}: {} comparisons, worst {:.1e} of the tolerance",
                    report.comparisons, report.worst
                );
                ran += 1;
                comparisons += report.comparisons;
                failures.extend(report.failures);
            }
            ([], true) => {}
            ([], false) => failures.push(format!("{name}: no check claims it")),
            (_, true) => failures.push(format!("{name}: claimed and listed as not built")),
            (_, false) => failures.push(format!("{name}: claimed more than once")),
        }
    }
    if files.is_empty() {
        failures.push("the folder holds no files".into());
    }
    if chosen.is_none() {
        let unused = |pattern: &str| !files.iter().any(|(name, _)| matches(pattern, name));
        let listed = NOT_BUILT.iter().copied().chain(CLAIMS.iter().map(|(p, ..)| *p));
        failures.extend(listed.filter(|p| unused(p)).map(|p| format!("{p}: matches no file")));
    }
    println!("{ran} of {} files run, {comparisons} comparisons", files.len());
    assert!(failures.is_empty(), "{} failures:\n  {}", failures.len(), failures.join("\n  "));
}
