//! Observation models.

use crate::arrays::{Matrix, array, matrix, vector};
use crate::errors::exception;
use crate::pool::unlocked;
use crate::registry;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparsegp::Error;
use sparsegp::likelihoods::{self, Slopes, Target};
use sparsegp::linalg::{Mat, MatRef};

type Array1<'py> = PyReadonlyArray1<'py, f64>;
type Array2<'py> = PyReadonlyArray2<'py, f64>;

/// A likelihood p(y | f) of one target, which has K latent values: rows of N×K arrays.
#[pyclass(frozen, module = "sparsegp._core")]
pub struct Likelihood {
    inner: Box<dyn likelihoods::Likelihood>,
}

/// Latent values, means or variances of all rows, row by row.
struct Latent {
    rows: usize,
    /// K.
    width: usize,
    values: Vec<f64>,
}

impl Latent {
    fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.width..][..self.width]
    }
}

impl Likelihood {
    fn latent(&self, what: &str, array: &Array2<'_>) -> PyResult<Latent> {
        let view = Matrix::of(array);
        let a: MatRef<'_, f64> = view.as_ref();
        let k = self.inner.latents();
        if a.ncols() != k {
            return Err(exception(Error::Shape {
                what: format!("{what} of the likelihood `{}`", self.inner.name()),
                expected: format!("{k} columns"),
                found: format!("{} columns", a.ncols()),
            }));
        }
        let values = (0..a.nrows()).flat_map(|i| (0..k).map(move |j| a[(i, j)])).collect();
        Ok(Latent { rows: a.nrows(), width: k, values })
    }

    fn latents(&self, mean: &Array2<'_>, variance: &Array2<'_>) -> PyResult<(Latent, Latent)> {
        let (mean, variance) = (self.latent("means", mean)?, self.latent("variances", variance)?);
        self.rows("variances", variance.rows, mean.rows)?;
        if let Some(v) = variance.values.iter().find(|v| **v < 0.0 || v.is_nan()) {
            return Err(exception(Error::Invalid(format!(
                "a latent variance is {v}; it must be ≥ 0"
            ))));
        }
        Ok((mean, variance))
    }

    fn rows(&self, what: &str, found: usize, expected: usize) -> PyResult<()> {
        if found == expected {
            return Ok(());
        }
        let (expected, found) = (format!("{expected} rows"), format!("{found} rows"));
        Err(exception(Error::Shape { what: what.into(), expected, found }))
    }

    fn extras(&self, extra: Option<&Array1<'_>>, rows: usize) -> PyResult<Vec<f64>> {
        let own = self.inner.extra();
        let Some(extra) = extra else {
            return match own {
                Some(likelihoods::Extra { name, default: None }) => Err(exception(Error::Invalid(
                    format!("the likelihood `{}` needs the {name} of every row", self.inner.name()),
                ))),
                own => Ok(vec![own.and_then(|e| e.default).unwrap_or(1.0); rows]),
            };
        };
        if own.is_none() {
            let name = self.inner.name();
            let text = format!("the likelihood `{name}` takes no further number of a row");
            return Err(exception(Error::Invalid(text)));
        }
        let extra = vector(Some(extra));
        self.rows("further numbers of the rows", extra.len(), rows)?;
        Ok(extra)
    }

    fn targets(
        &self,
        y: &Array1<'_>,
        extra: Option<&Array1<'_>>,
        rows: usize,
    ) -> PyResult<Vec<Target>> {
        let y = vector(Some(y));
        self.rows("targets", y.len(), rows)?;
        let extra = self.extras(extra, rows)?;
        let targets: Vec<Target> =
            y.into_iter().zip(extra).map(|(y, extra)| Target { y, extra }).collect();
        for target in &targets {
            self.inner.check(*target).map_err(|reason| {
                exception(Error::Invalid(format!("the target {} {reason}", target.y)))
            })?;
        }
        Ok(targets)
    }

    /// Returns one number per row.
    fn each<'py>(
        &self,
        py: Python<'py>,
        rows: usize,
        value: impl Fn(usize) -> f64 + Sync + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let values = unlocked(py, || Ok((0..rows).map(value).collect::<Vec<f64>>()))?;
        array(py, values, &[rows])
    }
}

#[pymethods]
impl Likelihood {
    #[new]
    fn new(json: &str) -> PyResult<Self> {
        Ok(Self { inner: registry::likelihood(json)? })
    }

    /// Returns the likelihood with its present values, as JSON.
    fn json(&self) -> String {
        self.inner.to_json().to_string()
    }

    /// Returns the number of latent functions K.
    #[getter]
    fn num_latents(&self) -> usize {
        self.inner.latents()
    }

    /// Returns the number of classes, if targets are classes.
    #[getter]
    fn num_classes(&self) -> Option<usize> {
        self.inner.classes()
    }

    /// Returns the name of the further number that every row may bring.
    #[getter]
    fn extra(&self) -> Option<&'static str> {
        self.inner.extra().map(|e| e.name)
    }

    /// Returns log p(y | f).
    #[pyo3(signature = (f, y, *, extra=None))]
    fn log_prob<'py>(
        &self,
        py: Python<'py>,
        f: Array2<'py>,
        y: Array1<'py>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let f = self.latent("values", &f)?;
        let y = self.targets(&y, extra.as_ref(), f.rows)?;
        self.each(py, f.rows, |i| self.inner.log_prob(y[i], f.row(i)))
    }

    /// Returns E[log p(y | f)] with its slopes in means and variances, N×K each, and in the
    /// parameters, summed over the rows.
    #[pyo3(signature = (mean, variance, y, *, extra=None))]
    #[allow(clippy::type_complexity)]
    fn variational_expectations<'py>(
        &self,
        py: Python<'py>,
        mean: Array2<'py>,
        variance: Array2<'py>,
        y: Array1<'py>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyDict>)>
    {
        let (mean, variance) = self.latents(&mean, &variance)?;
        let y = self.targets(&y, extra.as_ref(), mean.rows)?;
        let (n, k) = (mean.rows, self.inner.latents());
        let (values, by_mean, by_variance, total) = unlocked(py, || {
            let (mut by_mean, mut by_variance) = (vec![0.0; n * k], vec![0.0; n * k]);
            let mut own = vec![0.0; self.inner.num_params()];
            let mut total = own.clone();
            let mut values = Vec::with_capacity(n);
            for (i, y) in y.iter().enumerate() {
                let at = i * k..(i + 1) * k;
                let slopes = Slopes {
                    mean: &mut by_mean[at.clone()],
                    variance: &mut by_variance[at.clone()],
                    params: &mut own,
                };
                let (m, v) = (&mean.values[at.clone()], &variance.values[at]);
                values.push(self.inner.expect(*y, m, v, slopes));
                total.iter_mut().zip(&own).for_each(|(t, o)| *t += o);
            }
            Ok((values, by_mean, by_variance, total))
        })?;
        let params = PyDict::new(py);
        let mut rest = &total[..];
        for (path, param) in self.inner.params() {
            let (own, tail) = rest.split_at(param.len());
            rest = tail;
            let shape: &[usize] = if own.len() == 1 { &[] } else { &[own.len()] };
            params.set_item(path, array(py, own.to_vec(), shape)?)?;
        }
        Ok((
            array(py, values, &[n])?,
            array(py, by_mean, &[n, k])?,
            array(py, by_variance, &[n, k])?,
            params,
        ))
    }

    /// Returns the means and variances of y.
    #[pyo3(signature = (mean, variance, *, extra=None))]
    fn predict_mean_and_var<'py>(
        &self,
        py: Python<'py>,
        mean: Array2<'py>,
        variance: Array2<'py>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (mean, variance) = self.latents(&mean, &variance)?;
        let extra = self.extras(extra.as_ref(), mean.rows)?;
        let (means, variances): (Vec<f64>, Vec<f64>) = unlocked(py, || {
            Ok((0..mean.rows)
                .map(|i| {
                    let (m, v) = (mean.row(i), variance.row(i));
                    self.inner.predict(extra[i], m, v)
                })
                .unzip())
        })?;
        Ok((array(py, means, &[mean.rows])?, array(py, variances, &[mean.rows])?))
    }

    /// Returns log E[p(y | f)].
    #[pyo3(signature = (mean, variance, y, *, extra=None))]
    fn predict_log_density<'py>(
        &self,
        py: Python<'py>,
        mean: Array2<'py>,
        variance: Array2<'py>,
        y: Array1<'py>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (mean, variance) = self.latents(&mean, &variance)?;
        let y = self.targets(&y, extra.as_ref(), mean.rows)?;
        self.each(py, mean.rows, |i| {
            let (m, v) = (mean.row(i), variance.row(i));
            self.inner.predict_log_density(y[i], m, v)
        })
    }

    /// Returns P(Y ≤ y), for any y.
    #[pyo3(signature = (mean, variance, y, *, extra=None))]
    fn cdf<'py>(
        &self,
        py: Python<'py>,
        mean: Array2<'py>,
        variance: Array2<'py>,
        y: Array1<'py>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (mean, variance) = self.latents(&mean, &variance)?;
        let y = vector(Some(&y));
        self.rows("values", y.len(), mean.rows)?;
        let extra = self.extras(extra.as_ref(), mean.rows)?;
        self.each(py, mean.rows, |i| {
            let (m, v) = (mean.row(i), variance.row(i));
            self.inner.cdf(Target { y: y[i], extra: extra[i] }, m, v)
        })
    }

    /// Returns a quantile of y.
    #[pyo3(signature = (mean, variance, level, *, extra=None))]
    fn quantile<'py>(
        &self,
        py: Python<'py>,
        mean: Array2<'py>,
        variance: Array2<'py>,
        level: f64,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if !(level > 0.0 && level < 1.0) {
            let text = format!("the level of a quantile is {level}; it must be between 0 and 1");
            return Err(exception(Error::Invalid(text)));
        }
        let (mean, variance) = self.latents(&mean, &variance)?;
        let extra = self.extras(extra.as_ref(), mean.rows)?;
        self.each(py, mean.rows, |i| {
            let (m, v) = (mean.row(i), variance.row(i));
            self.inner.quantile(extra[i], m, v, level)
        })
    }

    /// Returns the probabilities of the classes, N×C.
    fn predict_proba<'py>(
        &self,
        py: Python<'py>,
        mean: Array2<'py>,
        variance: Array2<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(classes) = self.inner.classes() else {
            let text = format!("the likelihood `{}` has no class probabilities", self.inner.name());
            return Err(exception(Error::Invalid(text)));
        };
        let (mean, variance) = self.latents(&mean, &variance)?;
        let all = unlocked(py, || {
            let mut all = Mat::zeros(mean.rows, classes);
            let mut own = vec![0.0; classes];
            for i in 0..mean.rows {
                let (m, v) = (mean.row(i), variance.row(i));
                self.inner.probabilities(m, v, &mut own);
                own.iter().enumerate().for_each(|(c, p)| all[(i, c)] = *p);
            }
            Ok(all)
        })?;
        matrix(py, all.as_ref())
    }

    /// Draws of y given latent values.
    #[pyo3(signature = (f, seed, *, extra=None))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        f: Array2<'py>,
        seed: u64,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let f = self.latent("values", &f)?;
        let extra = self.extras(extra.as_ref(), f.rows)?;
        let values = unlocked(py, || {
            let mut rng = sparsegp::rng::stream(seed, "samples of a likelihood");
            let mut draw = |i: usize| self.inner.sample(extra[i], f.row(i), &mut rng);
            Ok((0..f.rows).map(&mut draw).collect::<Vec<f64>>())
        })?;
        array(py, values, &[f.rows])
    }
}
