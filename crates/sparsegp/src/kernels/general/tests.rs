use super::*;
use crate::testing::check_kernel;

/// Periodic random walk of a shape: k = σ² (1 + a·b·xz) exp(−½ Σ ((x − z)/ℓ)²), with a free sign.
#[derive(Clone, Debug)]
struct Trended {
    pulls: bool,
    /// What is wrong, on purpose.
    wrong: Option<&'static str>,
}

impl Covariance for Trended {
    fn name(&self) -> &'static str {
        "trended"
    }

    fn parameters(&self, columns: usize) -> Vec<(String, Param)> {
        vec![
            ("variance".into(), Param::positive(1.0).of(Role::Variance)),
            (
                "lengthscales".into(),
                Param::positive_vector(vec![1.0; columns]).of(Role::Lengthscales),
            ),
            (
                "shift".into(),
                Param::with(vec![0.4], crate::params::Shape::Scalar, Transform::Identity),
            ),
        ]
    }

    fn values(&self, p: &[&[f64]], x: MatRef<f64>, z: MatRef<f64>, mut out: MatMut<f64>) {
        for j in 0..z.nrows() {
            for i in 0..x.nrows() {
                let d2: f64 =
                    (0..x.ncols()).map(|q| ((x[(i, q)] - z[(j, q)]) / p[1][q]).powi(2)).sum();
                let linear = (x[(i, 0)] - p[2][0]) * (z[(j, 0)] - p[2][0]);
                out[(i, j)] = match self.wrong {
                    Some("symmetric") => p[0][0] * x[(i, 0)],
                    Some("finite") => f64::NAN,
                    Some("definite") => p[0][0] * if d2 == 0.0 { 1.0 } else { -0.9 },
                    _ => p[0][0] * ((-0.5 * d2).exp() + linear),
                };
            }
        }
    }

    fn variances(&self, p: &[&[f64]], x: MatRef<f64>, out: &mut [f64]) {
        let factor = if self.wrong == Some("variance") { 1.1 } else { 1.0 };
        for (i, v) in out.iter_mut().enumerate() {
            *v = factor * p[0][0] * (1.0 + (x[(i, 0)] - p[2][0]).powi(2));
        }
        if self.wrong == Some("definite") {
            out.fill(p[0][0]);
        }
    }

    fn has_pull_back(&self) -> bool {
        self.pulls
    }

    fn pull_back(
        &self,
        p: &[&[f64]],
        x: MatRef<f64>,
        z: MatRef<f64>,
        weights: MatRef<f64>,
        mut slopes: Slopes<'_>,
    ) {
        let d = x.ncols();
        let factor = if self.wrong == Some("slope") { 1.01 } else { 1.0 };
        for j in 0..z.nrows() {
            for i in 0..x.nrows() {
                let w = weights[(i, j)];
                let d2: f64 = (0..d).map(|q| ((x[(i, q)] - z[(j, q)]) / p[1][q]).powi(2)).sum();
                let (u, v, e) = (x[(i, 0)] - p[2][0], z[(j, 0)] - p[2][0], (-0.5 * d2).exp());
                slopes.parameters[0] += factor * w * (e + u * v);
                slopes.parameters[1 + d] -= w * p[0][0] * (u + v);
                slopes.x[(i, 0)] += w * p[0][0] * v;
                slopes.z[(j, 0)] += w * p[0][0] * u;
                for q in 0..d {
                    let apart = x[(i, q)] - z[(j, q)];
                    let slope = w * p[0][0] * e * apart / (p[1][q] * p[1][q]);
                    slopes.parameters[1 + q] += slope * apart / p[1][q];
                    slopes.x[(i, q)] -= slope;
                    slopes.z[(j, q)] += slope;
                }
            }
        }
    }
}

fn rows(n: usize) -> Mat<f64> {
    Mat::from_fn(n, 3, |i, j| (1.7 * i as f64 + 2.3 * j as f64).sin() * 1.6)
}

fn kernel(pulls: bool, wrong: Option<&'static str>) -> General {
    let json = json!({
        "type": "trended", "variance": 1.7, "lengthscales": [0.8, 1.9], "shift": -0.3, "active_dims": [2, 0],
    });
    let Value::Object(entries) = json else { unreachable!() };
    let args = Args::new("trended", &entries, Inputs::unnamed(3));
    General::read(Trended { pulls, wrong }, &args).unwrap()
}

#[test]
fn values_and_slopes_are_right_with_and_without_a_pull_back() {
    let (x, z) = (rows(7), Mat::from_fn(4, 3, |i, j| (0.9 * i as f64 - j as f64).cos()));
    for pulls in [true, false] {
        check_kernel(&kernel(pulls, None), x.as_ref(), z.as_ref()).unwrap();
    }
    // more rows than a block of variances has
    check_kernel(&kernel(true, None), rows(35).as_ref(), z.as_ref()).unwrap();
}

#[test]
fn the_trial_before_a_fit_finds_what_is_wrong() {
    let x = rows(40);
    assert!(kernel(true, None).trial(x.as_ref()).is_ok());
    assert!(kernel(false, None).trial(x.as_ref()).is_ok());
    for (wrong, words) in [
        ("symmetric", "not symmetric"),
        ("finite", "is NaN for rows 0 and 0"),
        ("definite", "not positive semi-definite"),
        ("variance", "has the variance"),
        ("slope", "in `variance`, where differences"),
    ] {
        let error = kernel(true, Some(wrong)).trial(x.as_ref()).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("`trended`"), "{wrong}: {error}");
    }
}

#[test]
fn what_is_written_is_read() {
    let own = kernel(true, None);
    let json = own.to_json();
    assert_eq!(json["active_dims"], json!([2, 0]));
    assert_eq!(json["lengthscales"], json!([0.8, 1.9]));
    assert_eq!(json["shift"], json!(-0.3));
    let Value::Object(mut entries) = json else { unreachable!() };
    let read = |entries: &Map<String, Value>| {
        General::read(
            Trended { pulls: true, wrong: None },
            &Args::new("trended", entries, Inputs::unnamed(3)),
        )
    };
    assert_eq!(read(&entries).unwrap().to_json(), own.to_json());
    entries.insert("variances".into(), json!(2.0));
    let error = read(&entries).unwrap_err().to_string();
    assert!(
        error.contains("unknown entry `variances`; known: variance, lengthscales, shift"),
        "{error}"
    );
}

#[test]
fn variances_and_lengthscales_start_from_the_data() {
    let mut own = General::new(Trended { pulls: true, wrong: None }, Inputs::unnamed(3)).unwrap();
    own.initialise(&[1.0, 2.0, 3.0], 5.0);
    let root = 3.0_f64.sqrt();
    let values: Vec<Vec<f64>> = own.params().iter().map(|(_, p)| p.value().to_vec()).collect();
    assert_eq!(values, [vec![5.0], vec![root, 2.0 * root, 3.0 * root], vec![0.4]]);
}
