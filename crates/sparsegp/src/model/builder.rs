//! Models from their parts, and whether parts fit together.

use super::{Method, Model, inducing_param};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, points_fit};
use crate::likelihoods::{Gaussian, Likelihood, mixing_shape};
use crate::linalg::{Jitter, MatRef};
use crate::means::{self, Mean};
use crate::params::{Param, Shape};
use crate::variational::{Tying, Variational};

/// The parts of a model, of which [`Builder::build`] makes one. What is not given has a default: Gaussian noise of
/// variance 1, a mean of 0, q at the prior, the default jitter.
#[derive(Debug)]
pub struct Builder {
    kernels: Vec<Box<dyn Kernel>>,
    mean: Option<Box<dyn Mean>>,
    likelihood: Box<dyn Likelihood>,
    inducing: Vec<Param>,
    q: Option<Variational>,
    method: &'static dyn Method,
    jitter: Jitter,
}

impl Model {
    /// Begins a model of this kernel and method.
    ///
    /// ```
    /// use sparsegp::kernels::{self, Inputs};
    /// use sparsegp::linalg::Mat;
    /// use sparsegp::{likelihoods, methods, model::Model};
    ///
    /// let kernel = kernels::parse("matern52", Inputs::unnamed(2))?;
    /// let points = Mat::from_fn(5, 2, |i, j| (i + j) as f64);
    /// let model = Model::builder(kernel, methods::find("svgp")?.method)
    ///     .likelihood(likelihoods::parse("poisson")?)
    ///     .inducing(points.as_ref())
    ///     .build(2, 1)?;
    /// assert_eq!(model.q.unwrap().points(), 5);
    /// # Ok::<(), sparsegp::Error>(())
    /// ```
    pub fn builder(kernel: Box<dyn Kernel>, method: &'static dyn Method) -> Builder {
        Builder {
            kernels: vec![kernel],
            mean: None,
            likelihood: Box::new(Gaussian::new(1.0)),
            inducing: Vec::new(),
            q: None,
            method,
            jitter: Jitter::default(),
        }
    }

    /// Checks that its parts fit together, and to D input columns and P targets.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::Shape`] that say which do not, with both numbers.
    pub fn check(&self, inputs: usize, outputs: usize) -> Result<()> {
        if outputs == 0 {
            return Err(Error::Invalid("a model has at least one target, found 0".into()));
        }
        let mixing = self.likelihood.mixing().map(mixing_shape);
        if let Some((rows, _)) = mixing.filter(|(rows, _)| *rows != outputs) {
            return Err(Error::Invalid(format!(
                "the likelihood `{}` mixes functions for {rows} targets, and there are {outputs}",
                self.likelihood.name()
            )));
        }
        let latents = self.latents(outputs);
        self.check_kernels(latents)?;
        let (name, has_q) = (self.method.name(), self.method.has_q());
        self.check_points(inputs)?;
        if let Some(q) = &self.q
            && q.latents() != latents
        {
            return Err(Error::Shape {
                what: "q".into(),
                expected: format!("{latents} columns, one per latent function"),
                found: format!("{}", q.latents()),
            });
        }
        if has_q != self.q.is_some() {
            let text = if has_q { "needs a q to start from" } else { "has no q" };
            return Err(Error::Invalid(format!("method `{name}` {text}")));
        }
        self.method.check(self)?;
        self.check_noise()
    }

    /// Refuses several kernels or sets of inducing points where the method has one of each.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names a method for several.
    pub(crate) fn check_kernels(&self, latents: usize) -> Result<()> {
        let (name, several) = (self.method.name(), self.method.takes_kernels());
        let (kernels, sets) = (self.kernels.len(), self.inducing.len());
        let fits = |count: usize| count == 1 || several && count == latents;
        if !fits(kernels) || !(sets == 0 || fits(sets)) {
            let each = match several {
                true => format!(", or one for each of the {latents} latent functions"),
                false => ", `svgp` one for each latent function".into(),
            };
            return Err(Error::Invalid(format!(
                "{kernels} kernels and {sets} sets of inducing points were given; method `{name}` takes one of each{each}"
            )));
        }
        Ok(())
    }

    /// Checks inducing points against the method, the inputs and q.
    fn check_points(&self, inputs: usize) -> Result<()> {
        let name = self.method.name();
        if self.method.is_sparse() == self.inducing.is_empty() {
            let text = if self.inducing.is_empty() { "needs" } else { "takes no" };
            return Err(Error::Invalid(format!("method `{name}` {text} inducing points")));
        }
        // of a deep model they lie among what the layer before gives, or among that with the inputs
        let below = self.hidden.last().map(|layer| layer.outputs());
        let mut first = None;
        for (l, z) in self.inducing.iter().enumerate() {
            let Shape::Matrix(m, d) = z.shape() else {
                return Err(Error::shape("inducing points", "a matrix", z.shape()));
            };
            let kernel = self.kernel_of(l);
            let fits = match below {
                None => points_fit(kernel, d, inputs),
                Some(below) => d == below || d == below + inputs,
            };
            if m == 0 || !fits {
                let columns = below.unwrap_or(inputs);
                let expected = format!("at least one row of {columns} columns");
                return Err(Error::shape("inducing points", expected, format!("{m}×{d}")));
            }
            if *first.get_or_insert(m) != m {
                let expected = format!("{} rows in every set", first.unwrap_or(m));
                return Err(Error::shape("inducing points", expected, m));
            }
        }
        let (Some(m), Some(q)) = (first, &self.q) else { return Ok(()) };
        if q.points() != m && q.tying() != Some(Tying::Untied) {
            let expected = format!("{m} rows, one per inducing point");
            return Err(Error::shape("q", expected, q.points()));
        }
        Ok(())
    }

    /// Refuses a noise variance of 0 where the method divides by it.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the method that does not.
    pub fn check_noise(&self) -> Result<()> {
        if self.noise() != 0.0 || !self.method.divides_by_noise() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "method `{}` divides by the noise variance, and `likelihood.variance` is 0: use `exact`, or a positive \
             variance",
            self.method.name()
        )))
    }
}

impl Builder {
    /// Takes one kernel for every latent function.
    #[must_use]
    pub fn kernels(mut self, kernels: Vec<Box<dyn Kernel>>) -> Self {
        self.kernels = kernels;
        self
    }

    /// Takes a mean function, with as many outputs as the likelihood sees latent functions.
    #[must_use]
    pub fn mean(mut self, mean: Box<dyn Mean>) -> Self {
        self.mean = Some(mean);
        self
    }

    /// Takes a likelihood.
    #[must_use]
    pub fn likelihood(mut self, likelihood: Box<dyn Likelihood>) -> Self {
        self.likelihood = likelihood;
        self
    }

    /// Adds a set of inducing points (M×D): one for all latent functions, or one for each.
    #[must_use]
    pub fn inducing(mut self, z: MatRef<f64>) -> Self {
        self.inducing.push(inducing_param(z));
        self
    }

    /// Takes a q. Without one it is the prior; sites of rows need theirs ([`super::WithQ::start`]).
    #[must_use]
    pub fn q(mut self, q: Variational) -> Self {
        self.q = Some(q);
        self
    }

    /// Takes a jitter of Kuu.
    #[must_use]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Makes the model, of D input columns and P targets.
    ///
    /// # Errors
    /// As for [`Model::check`].
    pub fn build(self, inputs: usize, outputs: usize) -> Result<Model> {
        let seen = self.likelihood.latents() * outputs;
        let mean = match self.mean {
            Some(mean) => mean,
            None => means::by_name("zero", inputs, seen)?,
        };
        let mut model = Model {
            kernels: self.kernels,
            mean,
            likelihood: self.likelihood,
            inducing: self.inducing,
            q: self.q,
            method: self.method,
            jitter: self.jitter,
            hidden: Vec::new(),
        };
        let points = match model.inducing.first().map(Param::shape) {
            Some(Shape::Matrix(m, _)) => m,
            _ => 0,
        };
        let start = model.method.with_q().filter(|q| q.is_of_points() && model.q.is_none());
        if let Some(q) = start {
            model.q = Some(q.start([0, points, model.latents(outputs)], Tying::Natural, false));
        }
        model.check(inputs, outputs)?;
        Ok(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{self, Inputs};
    use crate::linalg::Mat;
    use crate::{likelihoods, methods};

    fn begin(method: &str) -> Builder {
        let kernel = kernels::parse("rbf(lengthscales=0.7)", Inputs::unnamed(3)).unwrap();
        Model::builder(kernel, methods::find(method).unwrap().method)
    }

    fn points(rows: usize, columns: usize) -> Mat<f64> {
        Mat::from_fn(rows, columns, |i, j| 0.3 * i as f64 - j as f64)
    }

    #[test]
    fn parts_that_fit_are_a_model() {
        for method in methods::REGISTRY.iter().filter(|e| e.method.is_sparse()) {
            if method.method.architecture().is_some() {
                continue;
            }
            let gaussian = !method.method.augments();
            let likelihood = if gaussian { "gaussian" } else { "student-t" };
            let built = begin(method.name)
                .likelihood(likelihoods::parse(likelihood).unwrap())
                .inducing(points(4, 3).as_ref())
                .build(3, 2);
            let model = built.unwrap_or_else(|e| panic!("{}: {e}", method.name));
            assert_eq!(model.q.is_some(), method.method.has_q(), "{}", method.name);
            assert!(model.q.is_none_or(|q| (q.points(), q.latents()) == (4, 2)));
        }
        begin("exact").build(3, 2).unwrap();
    }

    #[test]
    fn parts_that_do_not_fit_are_refused_with_both_numbers() {
        let z = points(4, 3);
        let wrong = |builder: Builder, outputs: usize, words: &[&str]| {
            let error = builder.build(3, outputs).unwrap_err().to_string();
            words.iter().for_each(|word| assert!(error.contains(word), "{word}: {error}"));
        };
        wrong(begin("svgp"), 1, &["svgp", "needs inducing points"]);
        wrong(begin("exact").inducing(z.as_ref()), 1, &["exact", "takes no inducing points"]);
        wrong(begin("svgp").inducing(points(4, 2).as_ref()), 1, &["3 columns", "4×2"]);
        wrong(begin("svgp").inducing(points(0, 3).as_ref()), 1, &["at least one row", "0×3"]);
        wrong(begin("svgp").inducing(z.as_ref()), 0, &["at least one target"]);
        let uneven = begin("svgp").inducing(z.as_ref()).inducing(points(5, 3).as_ref());
        wrong(uneven, 2, &["4 rows in every set", "5"]);
        let two = || vec![begin("svgp").kernels.remove(0), begin("svgp").kernels.remove(0)];
        wrong(begin("svgp").kernels(two()).inducing(z.as_ref()), 3, &["2 kernels", "3 latent"]);
        wrong(
            begin("titsias2025").kernels(two()).inducing(z.as_ref()),
            2,
            &["2 kernels", "one of"],
        );
        let q = Variational::prior(5, 1, false);
        wrong(begin("svgp").inducing(z.as_ref()).q(q), 1, &["4 rows", "5"]);
        let q = Variational::prior(4, 2, false);
        wrong(begin("svgp").inducing(z.as_ref()).q(q), 1, &["1 columns", "2"]);
        let q = Variational::prior(4, 1, false);
        wrong(begin("spherical").inducing(z.as_ref()).q(q), 1, &["spherical", "no q"]);
        wrong(begin("tvgp"), 1, &["tvgp", "needs a q"]);
        let noiseless = || likelihoods::parse("gaussian(variance=0)").unwrap();
        let sparse = begin("svgp").inducing(z.as_ref()).likelihood(noiseless());
        wrong(sparse, 1, &["svgp", "divides by the noise variance", "exact"]);
        begin("exact").likelihood(noiseless()).build(3, 1).unwrap();
        let poisson = likelihoods::parse("poisson").unwrap();
        wrong(begin("exact").likelihood(poisson), 1, &["exact", "poisson"]);
    }
}
