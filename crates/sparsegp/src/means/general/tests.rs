use super::*;
use crate::means::by_name;
use crate::params::Shape;
use crate::testing::check_mean;

/// height · exp(−rate x₀) + slopesᵀx, (1 + p)-fold for output p.
#[derive(Clone, Debug)]
struct Own {
    slopes: bool,
    /// What is wrong, on purpose.
    wrong: Option<&'static str>,
}

impl Function for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn parameters(&self, columns: usize) -> Vec<(String, Param)> {
        let slopes = (0..columns).map(|q| 0.7 - 0.4 * q as f64).collect();
        vec![
            ("height".into(), Param::real(-2.3)),
            ("rate".into(), Param::positive(0.4)),
            ("slopes".into(), Param::with(slopes, Shape::Vector(columns), Transform::Identity)),
        ]
    }

    fn values(&self, p: &[&[f64]], x: MatRef<f64>, mut out: MatMut<f64>) {
        let n = x.nrows();
        let middle = (0..n).map(|i| x[(i, 0)]).sum::<f64>() / n as f64;
        for i in 0..n {
            let line: f64 = p[2].iter().enumerate().map(|(q, w)| w * x[(i, q)]).sum();
            let own = p[0][0] * (-p[1][0] * x[(i, 0)]).exp() + line;
            let own = match self.wrong {
                Some("rows") => own - middle,
                Some("finite") => f64::NAN,
                _ => own,
            };
            (0..out.ncols()).for_each(|o| out[(i, o)] = (1 + o) as f64 * own);
        }
    }

    fn has_pull_back(&self) -> bool {
        self.slopes
    }

    fn pull_back(&self, p: &[&[f64]], x: MatRef<f64>, w: MatRef<f64>, mut slopes: Slopes<'_>) {
        let factor = if self.wrong == Some("slope") { 1.01 } else { 1.0 };
        for i in 0..x.nrows() {
            let w: f64 = (0..w.ncols()).map(|o| (1 + o) as f64 * w[(i, o)]).sum();
            let decay = (-p[1][0] * x[(i, 0)]).exp();
            slopes.parameters[0] += w * decay;
            slopes.parameters[1] -= factor * w * p[0][0] * x[(i, 0)] * decay;
            slopes.x[(i, 0)] -= w * p[0][0] * p[1][0] * decay;
            for (q, own) in p[2].iter().enumerate() {
                slopes.parameters[2 + q] += w * x[(i, q)];
                slopes.x[(i, q)] += w * own;
            }
        }
    }
}

fn rows() -> Mat<f64> {
    Mat::from_fn(7, 2, |i, j| (1.7 * i as f64 + j as f64).sin() * 1.4)
}

#[test]
fn values_and_slopes_are_right() {
    for slopes in [false, true] {
        for outputs in [1, 3] {
            let mean = General::new(Own { slopes, wrong: None }, 2, outputs);
            check_mean(&mean, rows().as_ref(), outputs).unwrap();
            mean.trial(rows().as_ref(), outputs).unwrap();
        }
    }
    let mut linear = by_name("linear", 2, 3).unwrap();
    for (_, param) in linear.params_mut() {
        param.value_mut().iter_mut().enumerate().for_each(|(i, v)| *v = 0.3 + i as f64);
    }
    check_mean(&*linear, rows().as_ref(), 3).unwrap();
}

#[test]
fn what_is_wrong_is_found() {
    for (wrong, words) in [
        ("finite", "is NaN for row 0"),
        ("rows", "it must look at every row by itself"),
        ("slope", "in `rate`"),
    ] {
        let own = General::new(Own { slopes: true, wrong: Some(wrong) }, 2, 2);
        let error = own.trial(rows().as_ref(), 2).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("`own`"), "{wrong}: {error}");
        check_mean(&own, rows().as_ref(), 2).unwrap_err();
    }
    let own = General::new(Own { slopes: true, wrong: None }, 2, 5);
    assert!(own.check(3, 5).is_err() && own.check(2, 1).is_err() && own.check(2, 5).is_ok());
}

#[test]
fn its_specification_is_read_again() {
    let entries = serde_json::json!({ "height": { "value": 0.4, "frozen": true }, "rate": 3.0 });
    let args = |entries| Args { name: "own", entries, inputs: 2, outputs: 1 };
    let own = Own { slopes: false, wrong: None };
    let mean = General::read(own.clone(), &args(entries.as_object().unwrap())).unwrap();
    let json = mean.to_json();
    let again = General::read(own.clone(), &args(json.as_object().unwrap())).unwrap();
    assert_eq!(again.to_json(), json);
    assert_eq!(json["rate"], 3.0);
    assert!(again.params()[0].1.frozen);
    let entries = serde_json::json!({ "speed": 1.0 });
    let error = General::read(own, &args(entries.as_object().unwrap())).unwrap_err().to_string();
    assert!(error.contains("unknown entry `speed`; known: height, rate, slopes"), "{error}");
}
