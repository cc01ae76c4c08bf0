//! Points chosen online: what is accepted, bounds, pruning and capping.

use crate::support::{Outcome, Report, check_known, get, items, matrix, number, numbers, own};
use serde_json::{Value, json};
use sparsegp::inducing::select::oips::{accept, cap, normalised, prune, trace_bound};
use sparsegp::kernels::{Inputs, Kernel, Tape, build};
use sparsegp::linalg::{Cholesky, Jitter, Mat, MatRef};
use std::path::Path;

fn rbf(v: f64, l: f64, inputs: usize) -> Outcome<Box<dyn Kernel>> {
    let spec = json!({ "type": "rbf", "variance": v, "lengthscales": l });
    own(build(&spec, Inputs::unnamed(inputs)))
}

fn covariances(kernel: &dyn Kernel, a: MatRef<f64>, b: MatRef<f64>) -> Mat<f64> {
    let mut k = Mat::zeros(a.nrows(), b.nrows());
    kernel.evaluate(a, Some(b), k.as_mut(), &mut Tape::off());
    k
}

/// Correlations of all rows with the rows `with`, N×(their number).
fn correlations(kernel: &dyn Kernel, x: MatRef<f64>, with: &[usize]) -> Mat<f64> {
    let z = Mat::from_fn(with.len(), x.ncols(), |i, q| x[(with[i], q)]);
    let k = covariances(kernel, x, z.as_ref());
    let mut diag = vec![0.0; x.nrows()];
    kernel.diag(x, &mut diag);
    let mut all = Mat::zeros(x.nrows(), with.len());
    for (j, &i) in with.iter().enumerate() {
        let own = normalised(k.col_as_slice(j), &diag, diag[i]);
        all.col_as_slice_mut(j).copy_from_slice(&own);
    }
    all
}

fn indices(json: &Value) -> Outcome<Vec<f64>> {
    numbers(json)
}

fn as_numbers(all: &[usize]) -> Vec<f64> {
    all.iter().map(|i| *i as f64).collect()
}

pub fn check(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    check_known(
        json,
        &[
            "kernel",
            "v",
            "l",
            "rho",
            "X",
            "batches",
            "max_correlation",
            "accepted",
            "note",
            "bounds",
            "prune",
            "cap",
            "file",
        ],
        report,
    )?;
    let (v, l, rho) =
        (number(get(json, "v")?)?, number(get(json, "l")?)?, number(get(json, "rho")?)?);
    let x = matrix(get(json, "X")?)?;
    let kernel = rbf(v, l, x.ncols())?;
    let mut taken: Vec<usize> = Vec::new();
    let mut largest = Vec::new();
    for (batch, accepted) in
        items(get(json, "batches")?)?.iter().zip(items(get(json, "accepted")?)?)
    {
        let batch = numbers(batch)?;
        let (from, count) = (batch[0] as usize, (batch[1] - batch[0]) as usize);
        let of = |with: &[usize], i: usize| {
            let c = correlations(&*kernel, x.as_ref(), with);
            (0..with.len()).map(|j| c[(i, j)]).fold(-1.0, f64::max)
        };
        let nearest: Vec<f64> = (from..from + count).map(|i| of(&taken, i)).collect();
        let mut with = |i: usize| {
            let c = correlations(&*kernel, x.as_ref(), &[from + i]);
            Ok(vec![c.col_as_slice(0)[from..from + count].to_vec()])
        };
        let (rows, _) = own(accept(&mut [nearest], rho, usize::MAX, &mut with))?;
        let rows: Vec<usize> = rows.iter().map(|i| from + i).collect();
        report.close("accepted", &as_numbers(&rows), &indices(accepted)?);
        // what every row saw when its turn came
        for i in from..from + count {
            let earlier: Vec<usize> =
                taken.iter().chain(rows.iter().filter(|j| **j < i)).copied().collect();
            largest.push(of(&earlier, i));
        }
        taken.extend(rows);
    }
    report.close("max_correlation", &largest, &numbers(get(json, "max_correlation")?)?);
    bounds(&*kernel, (v, rho), x.as_ref(), &taken, get(json, "bounds")?, report)?;
    let z = Mat::from_fn(taken.len(), x.ncols(), |i, q| x[(taken[i], q)]);
    let all: Vec<usize> = (0..taken.len()).collect();
    let json_prune = get(json, "prune")?;
    let other = rbf(v, number(get(json_prune, "l")?)?, x.ncols())?;
    let among = correlations(&*other, z.as_ref(), &all);
    let least = number(get(json_prune, "m_min")?)? as usize;
    let keep = prune(among.as_ref(), number(get(json_prune, "rho_remove")?)?, least);
    report.close("prune keep", &as_numbers(&keep), &indices(get(json_prune, "keep")?)?);
    let json_cap = get(json, "cap")?;
    let other = rbf(v, number(get(json_cap, "l")?)?, x.ncols())?;
    let among = correlations(&*other, z.as_ref(), &all);
    let (most, least) =
        (number(get(json_cap, "m_max")?)? as usize, number(get(json_cap, "m_min")?)? as usize);
    report.require("eta", number(get(json_cap, "eta")?)? == 0.95, "another factor than ours");
    let capped = cap(among.as_ref(), rho, most, least);
    report.close("cap keep", &as_numbers(&capped.keep), &indices(get(json_cap, "keep")?)?);
    report.close("rho_accept_after", &[capped.rho], &[number(get(json_cap, "rho_accept_after")?)?]);
    report.close("rho_remove", &[capped.remove], &[number(get(json_cap, "rho_remove")?)?]);
    Ok(())
}

/// The error of Nyström's approximation and its bounds.
fn bounds(
    kernel: &dyn Kernel,
    (v, rho): (f64, f64),
    x: MatRef<f64>,
    taken: &[usize],
    json: &Value,
    report: &mut Report,
) -> Outcome {
    let (n, m) = (x.nrows(), taken.len());
    let z = Mat::from_fn(m, x.ncols(), |i, q| x[(taken[i], q)]);
    let kuu = covariances(kernel, z.as_ref(), z.as_ref());
    let kuf = covariances(kernel, z.as_ref(), x);
    let factor = own(Cholesky::new(kuu.as_ref(), Jitter::Absolute(0.0), "Kuu"))?;
    let rest = covariances(kernel, x, x) - kuf.transpose() * factor.solve(kuf.as_ref());
    let trace: f64 = (0..n).map(|i| rest[(i, i)]).sum();
    let rows = v * (n - m) as f64;
    let by = |size: f64| rows * (1.0 - rho * rho / (1.0 + size * rho));
    for (field, value) in crate::support::entries(json)? {
        let own = match field.as_str() {
            "N" => n as f64,
            "M" => m as f64,
            "trace" => trace,
            "frobenius" => rest.norm_l2(),
            "sharp" => trace_bound(v, n, m, rho),
            "gershgorin" => by((m - 1) as f64),
            "printed" => by((m * (m - 1)) as f64),
            _ => return Err(format!("the bound `{field}` is unknown here")),
        };
        report.close(field, &[own], &[number(value)?]);
    }
    Ok(())
}
