//! Inducing points chosen by the other selectors, with given uniform numbers; and natural-gradient steps on minibatches.

use crate::support::{
    Outcome, Report, by_rows, check_known, get, items, matrix, number, numbers, own,
};
use crate::trained::indices;
use serde_json::{Value, json};
use sparsegp::data::InMemory;
use sparsegp::engine::{Cpu, Want};
use sparsegp::inducing::select::{
    AdaptiveGrid, DEFAULT_TOLERANCE, Targets, greedy_elbo, greedy_traces, greedy_variance,
    kdpp_draw, kdpp_log_probability, kmeans_from, kmeans_seeds,
};
use sparsegp::kernels::{Inputs, Kernel, Tape, build};
use sparsegp::likelihoods;
use sparsegp::linalg::{Cholesky, Jitter, Mat, MatRef, symmetric_eigen};
use sparsegp::methods;
use sparsegp::methods::Uncollapsed;
use sparsegp::model::{Model, inducing_param};
use sparsegp::variational::Variational;
use std::path::Path;

/// The numbers of a file, one after the other, in the place of a generator.
struct Given<'a>(std::slice::Iter<'a, f64>);

impl rand::TryRng for Given<'_> {
    type Error = std::convert::Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok((self.try_next_u64()? >> 32) as u32)
    }
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let u = self.0.next().expect("the file has enough uniform numbers");
        // what `rng::uniform` makes of it is u again
        Ok(((u * (1_u64 << 53) as f64).round() as u64) << 11)
    }
    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Self::Error> {
        unreachable!("nobody asks for bytes")
    }
}

fn rbf(json: &Value, inputs: usize) -> Outcome<Box<dyn Kernel>> {
    let (v, l) = (number(get(json, "v")?)?, number(get(json, "l")?)?);
    let spec = json!({ "type": "rbf", "variance": v, "lengthscales": l });
    own(build(&spec, Inputs::unnamed(inputs)))
}

fn covariances(kernel: &dyn Kernel, a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
    let mut k = Mat::zeros(a.nrows(), b.nrows());
    kernel.evaluate(a, Some(b), k.as_mut(), &mut Tape::off());
    k
}

fn gather(x: MatRef<f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), x.ncols(), |i, q| x[(rows[i], q)])
}

fn as_numbers(all: &[usize]) -> Vec<f64> {
    all.iter().map(|i| *i as f64).collect()
}

/// Rows in sorted order: where the given order means nothing.
fn sorted(a: &Mat<f64>) -> Vec<f64> {
    let row = |i: usize| (0..a.ncols()).map(|q| a[(i, q)]).collect::<Vec<f64>>();
    let mut rows: Vec<Vec<f64>> = (0..a.nrows()).map(row).collect();
    rows.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    rows.concat()
}

pub fn check(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    check_known(
        json,
        &[
            "kernel",
            "v",
            "l",
            "noise_variance",
            "X",
            "y",
            "uniforms",
            "pivoted_cholesky",
            "greedy_elbo",
            "kmeanspp",
            "kdpp",
            "grid",
            "file",
        ],
        report,
    )?;
    let x = matrix(get(json, "X")?)?;
    let n = x.nrows();
    let kernel = rbf(json, x.ncols())?;
    let k = covariances(&*kernel, x.as_ref(), x.as_ref());
    let diag: Vec<f64> = (0..n).map(|i| k[(i, i)]).collect();
    let uniforms = numbers(get(json, "uniforms")?)?;
    let mut column = |i: usize| Ok(k.col_as_slice(i).to_vec());

    report.case = "pivoted Cholesky".into();
    let part = get(json, "pivoted_cholesky")?;
    check_known(part, &["indices", "residual_at_pick", "trace_after"], report)?;
    let rows = indices(get(part, "indices")?)?;
    let found =
        own(greedy_variance(x.as_ref(), rows.len(), &diag, &mut column, DEFAULT_TOLERANCE))?;
    let expected = gather(x.as_ref(), &rows);
    report.close("indices", &by_rows(found.points.as_ref()), &by_rows(expected.as_ref()));
    let traces = own(greedy_traces(rows.len(), &diag, &mut column, 0.0))?;
    report.close("trace_after", &traces[1..], &numbers(get(part, "trace_after")?)?);
    let at_pick = |pick: usize| -> Outcome<f64> {
        let z = gather(x.as_ref(), &rows[..pick]);
        let own_row = gather(x.as_ref(), &rows[pick..=pick]);
        if pick == 0 {
            return Ok(diag[rows[0]]);
        }
        let kuu = covariances(&*kernel, z.as_ref(), z.as_ref());
        let to = covariances(&*kernel, z.as_ref(), own_row.as_ref());
        let factor = own(Cholesky::new(kuu.as_ref(), Jitter::Absolute(0.0), "Kuu"))?;
        let solved = factor.solve(to.as_ref());
        Ok(diag[rows[pick]] - (0..pick).map(|i| to[(i, 0)] * solved[(i, 0)]).sum::<f64>())
    };
    let residuals = (0..rows.len()).map(at_pick).collect::<Outcome<Vec<_>>>()?;
    report.close("residual_at_pick", &residuals, &numbers(get(part, "residual_at_pick")?)?);

    report.case = "greedy bound".into();
    let part = get(json, "greedy_elbo")?;
    check_known(part, &["indices", "gains", "elbo_after", "note"], report)?;
    let rows = indices(get(part, "indices")?)?;
    let y = numbers(get(json, "y")?)?;
    let y = Mat::from_fn(n, 1, |i, _| y[i]);
    let targets = Targets { residuals: y.as_ref(), noise: number(get(json, "noise_variance")?)? };
    let mut columns = |some: &[usize]| Ok(Mat::from_fn(n, some.len(), |i, j| k[(i, some[j])]));
    let generator = &mut sparsegp::rng::stream(0, "all are candidates");
    let (found, bounds) =
        own(greedy_elbo(x.as_ref(), rows.len(), &diag, &mut columns, targets, n, generator))?;
    let expected = gather(x.as_ref(), &rows);
    report.close("indices", &by_rows(found.points.as_ref()), &by_rows(expected.as_ref()));
    report.close("elbo_after", &bounds[1..], &numbers(get(part, "elbo_after")?)?);
    let gains: Vec<f64> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    report.close("gains", &gains, &numbers(get(part, "gains")?)?);

    report.case = "k-means++".into();
    let part = get(json, "kmeanspp")?;
    check_known(part, &["M", "plain", "greedy3", "lloyd_from_plain", "note"], report)?;
    let m = number(get(part, "M")?)? as usize;
    let mut plain = Vec::new();
    for (field, candidates) in [("plain", 1), ("greedy3", 3)] {
        let part = get(part, field)?;
        check_known(part, &["indices", "potential"], report)?;
        let seeds = own(kmeans_seeds(x.as_ref(), m, candidates, &mut Given(uniforms.iter())))?;
        report.close(field, &as_numbers(&seeds), &numbers(get(part, "indices")?)?);
        let found = own(kmeans_from(x.as_ref(), &seeds, 1))?;
        report.close("potential", &found.inertia, &[number(get(part, "potential")?)?]);
        if candidates == 1 {
            plain = seeds;
        }
    }
    let part = get(part, "lloyd_from_plain")?;
    check_known(part, &["iterations", "centres", "assignment", "objective"], report)?;
    let found = own(kmeans_from(x.as_ref(), &plain, 1000))?;
    let centres = matrix(get(part, "centres")?)?;
    report.close("centres", &by_rows(found.centres.as_ref()), &by_rows(centres.as_ref()));
    let labels: Vec<f64> = found.labels.iter().map(|l| f64::from(*l)).collect();
    report.close("assignment", &labels, &numbers(get(part, "assignment")?)?);
    // programs end at different times; once nothing moves, nothing moves
    let mut theirs = numbers(get(part, "objective")?)?;
    theirs.resize(found.inertia.len(), theirs[theirs.len() - 1]);
    report.close("objective", &found.inertia, &theirs);

    report.case = "k-DPP".into();
    dpp(k.as_ref(), &uniforms, get(json, "kdpp")?, report)?;

    report.case = "grid".into();
    let part = get(json, "grid")?;
    check_known(part, &["points_per_dim", "first", "after_second_half", "first_rows"], report)?;
    let side = number(get(part, "points_per_dim")?)? as usize;
    let rows = indices(get(part, "first_rows")?)?;
    let mut seen = AdaptiveGrid::default();
    own(seen.see(x.as_ref().subrows(rows[0], rows[1] - rows[0])))?;
    let first = sorted(&own(seen.nodes(side))?);
    report.close("first", &first, &sorted(&matrix(get(part, "first")?)?));
    own(seen.see(x.as_ref().subrows(rows[1], n - rows[1])))?;
    let all = matrix(get(part, "after_second_half")?)?;
    report.close("after_second_half", &sorted(&own(seen.nodes(side))?), &sorted(&all));
    Ok(())
}

fn dpp(k: MatRef<f64>, uniforms: &[f64], json: &Value, report: &mut Report) -> Outcome {
    let fields =
        ["k", "eigenvalues", "esp_last_column", "eigen_selected", "sample", "log_prob", "note"];
    check_known(json, &fields, report)?;
    let m = number(get(json, "k")?)? as usize;
    let (values, _) = own(symmetric_eigen(k))?;
    report.close("eigenvalues", &values, &numbers(get(json, "eigenvalues")?)?);
    let rows = indices(get(json, "sample")?)?;
    let log_prob = own(kdpp_log_probability(k, &rows))?;
    report.close("log_prob", &[log_prob], &[number(get(json, "log_prob")?)?]);
    // e_l from two probabilities of sets of l rows: log|K_SS| − log P(S)
    let polynomials = (1..=m).map(|l| -> Outcome<f64> {
        let own_rows = Mat::from_fn(l, l, |i, j| k[(rows[i], rows[j])]);
        let factor = own(Cholesky::new(own_rows.as_ref(), Jitter::Absolute(0.0), "K_SS"))?;
        Ok((factor.log_det() - own(kdpp_log_probability(k, &rows[..l]))?).exp())
    });
    let polynomials = polynomials.collect::<Outcome<Vec<f64>>>()?;
    report.close("esp", &polynomials, &numbers(get(json, "esp_last_column")?)?[1..]);
    let drawn = own(kdpp_draw(k, m, &mut Given(uniforms.iter())))?;
    report.close("sample", &as_numbers(&drawn), &as_numbers(&rows));
    Ok(())
}

/// Stochastic natural-gradient steps (Hoffman et al. 2013) on minibatches that stand for N rows.
pub fn svi(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let fields = [
        "see",
        "X",
        "y",
        "Z",
        "v",
        "l",
        "noise_variance",
        "jitter_added_to_Kbb",
        "N",
        "B",
        "start",
        "steps",
        "file",
    ];
    check_known(json, &fields, report)?;
    let (x, y, z) = (matrix(get(json, "X")?)?, numbers(get(json, "y")?)?, matrix(get(json, "Z")?)?);
    let rows = own(InMemory::new(x, Mat::from_fn(y.len(), 1, |i, _| y[i])))?;
    let noise = number(get(json, "noise_variance")?)?;
    let likelihood = own(likelihoods::parse(&format!("gaussian(variance={noise:?})")))?;
    let m = z.nrows();
    let mut model = Model {
        kernels: vec![rbf(json, z.ncols())?],
        mean: Box::new(sparsegp::means::Zero),
        likelihood,
        inducing: vec![inducing_param(z.as_ref())],
        q: Some(Variational::prior(m, 1, false)),
        method: own(methods::find("svgp"))?.method,
        jitter: Jitter::Absolute(number(get(json, "jitter_added_to_Kbb")?)?),
        hidden: Vec::new(),
    };
    let (n, b) = (number(get(json, "N")?)? as usize, number(get(json, "B")?)? as usize);
    let engine = Cpu::default();
    let mut kuu = covariances(&*model.kernels[0], z.as_ref(), z.as_ref());
    let jitter = number(get(json, "jitter_added_to_Kbb")?)?;
    (0..m).for_each(|i| kuu[(i, i)] += jitter);
    let factor = own(Cholesky::new(kuu.as_ref(), Jitter::Absolute(0.0), "Kuu"))?;
    for (at, step) in items(get(json, "steps")?)?.iter().enumerate() {
        report.case = format!("step {at}");
        check_known(step, &["batch", "rho", "eta1", "eta2", "m", "S"], report)?;
        let first = number(get(step, "batch")?)? as usize * b;
        let picked: Vec<usize> = (first..first + b).collect();
        let part = crate::uncollapsed::batch(&rows, &picked, n as f64 / b as f64);
        let method = Uncollapsed::of(model.method).map_err(|_| "the method has no q")?;
        let mut own_step = own(method.step(&model, &engine, &part, Want::Statistics))?;
        own(own_step.natural(&mut model, number(get(step, "rho")?)?))?;
        let q = model.q.as_ref().ok_or("no q")?;
        // u = Lv
        let root = &factor.l * q.root(0);
        let mean = &factor.l * q.mean();
        let s = &root * root.transpose();
        report.close("m", mean.col_as_slice(0), &numbers(get(step, "m")?)?);
        report.close("S", &by_rows(s.as_ref()), &by_rows(matrix(get(step, "S")?)?.as_ref()));
        let precision = own(Cholesky::new(s.as_ref(), Jitter::Absolute(0.0), "S"))?.inverse();
        let eta1 = &precision * &mean;
        report.close("eta1", eta1.col_as_slice(0), &numbers(get(step, "eta1")?)?);
        let eta2 = precision * faer::Scale(-0.5);
        report.close(
            "eta2",
            &by_rows(eta2.as_ref()),
            &by_rows(matrix(get(step, "eta2")?)?.as_ref()),
        );
    }
    Ok(())
}
