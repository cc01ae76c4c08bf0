//! Nodes and weights of integrals over a standard normal.

/// How E[g(f)], f ~ N(μ, v), is computed where there is no closed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Gauss–Hermite with so many points, at most [`Rule::MOST`].
    GaussHermite(usize),
    /// The trapezoidal rule on nine standard deviations to either side, with a step that the
    /// likelihood chooses: for integrands with poles near the real line, where Gauss–Hermite fails.
    Trapezoid,
}

impl Rule {
    /// Most points of Gauss–Hermite.
    pub const MOST: usize = 200;

    /// Reads a rule from JSON: `trapezoid`, or a number of Gauss–Hermite points, plain or as
    /// `{gauss-hermite: 50}`; none for anything else.
    pub fn from_json(json: &serde_json::Value) -> Option<Self> {
        let rule = match json.as_u64() {
            Some(n) => Some(Rule::GaussHermite(n as usize)),
            None => serde_json::from_value(json.clone()).ok(),
        };
        rule.filter(|rule| match rule {
            Rule::GaussHermite(n) => (1..=Self::MOST).contains(n),
            Rule::Trapezoid => true,
        })
    }
}

impl Default for Rule {
    fn default() -> Self {
        Rule::GaussHermite(20)
    }
}

/// Which derivative of E[g(f)] by the variance is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Slope {
    /// Of the computed value: what line searches and finite differences see.
    #[default]
    Rule,
    /// ½ E[g″(f)] (Price 1958) by the same nodes: of the sign that g″ has.
    Price,
}

/// Nodes xⱼ and weights wⱼ with E[g(x)] ≈ Σ wⱼ g(xⱼ) for x ~ N(0, 1).
#[derive(Clone, Debug, PartialEq)]
pub struct Nodes {
    /// The nodes, ascending.
    pub x: Vec<f64>,
    /// The weights, of sum 1.
    pub w: Vec<f64>,
}

impl Nodes {
    /// Creates the rule of Gauss–Hermite for the standard normal: zeros of the Hermite polynomial
    /// Heₙ by Newton's method with the recurrence of the orthonormal polynomials.
    pub fn gauss_hermite(n: usize) -> Self {
        // orthonormal polynomials: √(k+1) h_{k+1} = x h_k − √k h_{k−1}; hₙ′ = √n h_{n−1}
        let polynomial = |x: f64| {
            let (mut last, mut here) = (0.0, 1.0);
            for k in 0..n {
                let next = (x * here - (k as f64).sqrt() * last) / ((k + 1) as f64).sqrt();
                (last, here) = (here, next);
            }
            (here, last)
        };
        let (mut x, mut w) = (vec![0.0; n], vec![0.0; n]);
        let root_n = (n as f64).sqrt();
        for i in 0..n.div_ceil(2) {
            // starting values from the zeros found so far, the largest first (deflated Newton)
            let found: Vec<f64> = x[n - i..].to_vec();
            let mut z = match i {
                0 => (2.0 * (2.0 * n as f64 + 1.0)).sqrt(),
                _ => found[0] - 1e-3,
            };
            for _ in 0..200 {
                let (value, last) = polynomial(z);
                let slope = root_n * last;
                let repelled: f64 = found.iter().map(|f| 1.0 / (z - f) + 1.0 / (z + f)).sum();
                let step = 1.0 / (slope / value - repelled);
                if !step.is_finite() {
                    break;
                }
                z -= step;
                if step.abs() < 1e-15 * (1.0 + z.abs()) {
                    break;
                }
            }
            if 2 * i + 1 == n {
                z = 0.0;
            }
            // polish without deflation
            let (value, last) = polynomial(z);
            z -= value / (root_n * last);
            let (_, last) = polynomial(z);
            let weight = 1.0 / (n as f64 * last * last);
            (x[n - 1 - i], w[n - 1 - i]) = (z, weight);
            (x[i], w[i]) = (-z, weight);
        }
        if n % 2 == 1 {
            x[n / 2] = 0.0;
        }
        Self { x, w }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_normal_are_exact() {
        for n in [1, 2, 3, 5, 20, 50, 100, 200] {
            let nodes = Nodes::gauss_hermite(n);
            assert!(nodes.x.windows(2).all(|p| p[0] < p[1]), "{n}: {:?}", nodes.x);
            let mut expected = 1.0;
            for k in 0..n.min(30) {
                // E[x^2k] = (2k−1)!!
                let terms = nodes.x.iter().zip(&nodes.w).map(|(x, w)| w * x.powi(2 * k as i32));
                let found: f64 = terms.sum();
                assert!((found / expected - 1.0).abs() < 1e-12, "{n} {k}: {found} {expected}");
                expected *= (2 * k + 1) as f64;
            }
        }
    }
}
