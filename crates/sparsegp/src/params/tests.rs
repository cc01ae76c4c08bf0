use super::*;
use std::f64::consts::PI;

fn transforms() -> [Transform; 6] {
    [
        Transform::Identity,
        Transform::POSITIVE,
        Transform::Softplus { lower: 1e-6 },
        Transform::Exp { lower: 0.3 },
        Transform::Interval { lower: -1.5, upper: 2.5 },
        Transform::Below { upper: -0.7 },
    ]
}

#[test]
fn transforms_invert_and_their_slopes_match_differences() {
    for t in transforms() {
        for free in [-30.0, -3.0, -0.4, 0.0, 0.7, 5.0, 30.0] {
            let value = t.to_constrained(free);
            assert!(t.contains(value), "{t} at {free} gives {value}");
            if free.abs() < 10.0 {
                assert!((t.to_free(value) - free).abs() < 1e-9 * (1.0 + free.abs()), "{t} {free}");
            }
            let h = 1e-5;
            let difference = (t.to_constrained(free + h) - t.to_constrained(free - h)) / (2.0 * h);
            assert!(
                (t.slope_at(value) - difference).abs() < 1e-8 * (1.0 + difference.abs()),
                "{t} at {free}: {} against {difference}",
                t.slope_at(value)
            );
        }
        // far out, the value stays strictly inside and finite numbers stay finite
        for free in [-1e4, -800.0, 40.0] {
            let value = t.to_constrained(free);
            assert!(t.contains(value), "{t} at {free} gives {value}");
        }
        assert!(t.to_constrained(f64::NAN).is_nan());
    }
}

#[test]
fn softplus_inverse_keeps_tiny_and_huge_values() {
    for value in [1e-300, 1e-20, 1e-3, 1.0, 40.0, 1e6, 1e12] {
        let t = Transform::POSITIVE;
        let back = t.to_constrained(t.to_free(value));
        assert!((back - value).abs() <= 1e-12 * value, "{value} comes back as {back}");
    }
}

#[test]
fn prior_slopes_match_differences_and_densities_integrate_to_one() {
    let priors = [
        Prior::Gamma { concentration: 2.3, rate: 3.1 },
        Prior::LogNormal { loc: 0.1, scale: 0.7 },
        Prior::Normal { loc: 1.4, scale: 0.6 },
        Prior::HalfNormal { scale: 1.7 },
        Prior::InverseGamma { concentration: 3.2, scale: 2.1 },
        Prior::HalfCauchy { scale: 1.7 },
        Prior::Uniform { low: 0.1, high: 4.2 },
        Prior::Horseshoe { scale: 0.7 },
    ];
    for prior in priors {
        for x in [0.2, 0.9, 3.7] {
            let h = 1e-6;
            let difference = (prior.log_density(x + h) - prior.log_density(x - h)) / (2.0 * h);
            assert!((prior.slope(x) - difference).abs() < 1e-7 * (1.0 + difference.abs()));
        }
        let n = 400_000;
        let (low, high) =
            if matches!(prior, Prior::Normal { .. }) { (-8.0, 12.0) } else { (0.0, 200.0) };
        let h = (high - low) / n as f64;
        let mut total: f64 =
            (0..n).map(|i| prior.log_density(low + (i as f64 + 0.5) * h).exp() * h).sum();
        let mut tolerance = 1e-5;
        match prior {
            // what is left of the tail
            Prior::HalfCauchy { scale } => total += 1.0 - 2.0 / PI * (high / scale).atan(),
            // both sides; the tail falls with 2τ/(x² √(2π³)), the peak is higher than steps tell
            Prior::Horseshoe { scale } => {
                total = 2.0 * (total + 2.0 * scale / (2.0 * PI.powi(3)).sqrt() / high);
                tolerance = 1e-3;
            }
            _ => {}
        }
        assert!((total - 1.0).abs() < tolerance, "{prior:?} integrates to {total}");
    }
}

#[test]
fn the_free_vector_skips_frozen_parameters_and_comes_back() {
    let mut a = Param::positive_vector(vec![0.3, 2.7]);
    let mut b = Param::positive(1.9);
    b.frozen = true;
    let mut c = Param::with(vec![-4.0, 0.5, 2.0, 1.0], Shape::Matrix(2, 2), Transform::Identity);
    let free = free_values(|v| {
        v(&"a", &a);
        v(&"b", &b);
        v(&"c", &c);
    });
    assert_eq!(free.len(), 6);
    let shifted: Vec<f64> = free.iter().map(|v| v + 0.25).collect();
    set_free_values(
        |v| {
            v(&"a", &mut a);
            v(&"b", &mut b);
            v(&"c", &mut c);
        },
        &shifted,
    );
    assert_eq!(b.scalar(), 1.9);
    assert_eq!(c.value()[0], -3.75);
    let mut gradient = [f64::NAN; 6];
    free_gradient(
        |v| {
            v(&"a", &a);
            v(&"b", &b);
            v(&"c", &c);
        },
        &[2.0, 3.0, 100.0, 1.0, 1.0, 1.0, 1.0],
        &mut gradient,
    );
    assert!(gradient.iter().all(|g| g.is_finite()));
    assert!((gradient[1] - 3.0 * Transform::POSITIVE.slope_at(a.value()[1])).abs() < 1e-15);
}

#[test]
fn tied_numbers_are_one_free_number() {
    let mut p = Param::positive_vector(vec![0.3, 2.7, 4.0, 1.0]);
    p.tie("p", vec![vec![1, 3], vec![0]]).unwrap();
    // the root mean square of 2.7 and 1
    let mean = ((2.7_f64 * 2.7 + 1.0) / 2.0).sqrt();
    assert_eq!((p.value()[0], p.value()[1], p.value()[3]), (0.3, mean, mean));
    assert_eq!((p.tied(), p.free_len()), (&[vec![1, 3]][..], 3));
    let frozen = Param { frozen: true, ..p.clone() };
    let last = Param::real(-7.0);
    let free = free_values(|v| [&p, &frozen, &last].map(|own| v(&"p", own)).into_iter().collect());
    assert_eq!((free.len(), free_count(|v| v(&"p", &p))), (4, 3));
    // a function of all values, and its slopes by differences of free numbers
    let of = |values: &[f64]| {
        values.iter().zip([1.3, -0.4, 2.0, 0.9]).map(|(v, c)| c * v * v).sum::<f64>()
    };
    let at = |free: &[f64]| {
        let mut own = p.clone();
        set_free_values(|v| v(&"p", &mut own), free);
        assert_eq!(own.value()[1], own.value()[3]);
        of(own.value())
    };
    let constrained: Vec<f64> =
        p.value().iter().zip([1.3, -0.4, 2.0, 0.9]).map(|(v, c)| 2.0 * c * v).collect();
    let mut gradient = [f64::NAN; 3];
    free_gradient(|v| v(&"p", &p), &constrained, &mut gradient);
    for i in 0..3 {
        let moved = |h: f64| {
            let mut own = free[..3].to_vec();
            own[i] += h;
            at(&own)
        };
        let difference = (moved(1e-6) - moved(-1e-6)) / 2e-6;
        assert!((gradient[i] - difference).abs() < 1e-7, "{i}: {} {difference}", gradient[i]);
    }
    // a prior counts once
    p.prior = Some(Prior::Normal { loc: 0.5, scale: 1.7 });
    let mut slopes = [0.0; 4];
    let total = log_prior(|v| v(&"p", &p), &mut slopes);
    let prior = p.prior.unwrap();
    let expected: f64 = p.value()[..3].iter().map(|v| prior.log_density(*v)).sum();
    assert!((total - expected).abs() < 1e-14 && slopes[3] == 0.0);
    p.prior = None;

    let json = p.to_json(Transform::POSITIVE);
    assert_eq!(json["tied"], json!([[1, 3]]));
    let mut back = Param::positive_vector(vec![1.0; 4]);
    back.read_json("p", &json).unwrap();
    assert_eq!((back.value(), back.tied()), (p.value(), p.tied()));
    // starting values are levelled, others refused
    back.start(&[1.0, 3.0, 1.0, 3.0]);
    assert_eq!(back.value(), [1.0, 3.0, 1.0, 3.0]);
    let error = back.set("p", &[1.0, 3.0, 1.0, 2.0]).unwrap_err().to_string();
    assert!(error.contains("`p`") && error.contains("numbers 1 and 3"), "{error}");
    assert!(back.tie("p", vec![vec![0, 4]]).is_err());
    assert!(back.tie("p", vec![vec![0, 1], vec![1, 2]]).is_err());
    back.set_one(3, 9.0);
    assert_eq!(back.value(), [1.0, 9.0, 1.0, 9.0]);
    assert_eq!(back.slope_of(1, &[1.0, 2.0, 4.0, 8.0]), 10.0);
}

#[test]
fn setting_checks_range_and_number_and_names_the_path() {
    let mut p = Param::positive_vector(vec![1.0, 2.0, 3.0]);
    p.set("kernel.lengthscales", &[0.7]).unwrap();
    assert_eq!(p.value(), [0.7, 0.7, 0.7]);
    let error = p.set("kernel.lengthscales", &[1.0, -2.0, 1.0]).unwrap_err().to_string();
    assert!(error.contains("kernel.lengthscales") && error.contains("-2"), "{error}");
    let error = p.set("kernel.lengthscales", &[1.0, 2.0]).unwrap_err().to_string();
    assert!(error.contains("has 3 values, 2 were given"), "{error}");
    assert!(p.set("x", &[f64::NAN]).is_err());
}

#[test]
fn unknown_paths_name_the_nearest() {
    let p = Param::positive(1.0);
    let existing = [("kernel.variance".to_owned(), &p), ("likelihood.variance".to_owned(), &p)];
    let error = unknown("kernel.varaince", &existing).to_string();
    assert!(error.contains("nearest: `kernel.variance`"), "{error}");
}

#[test]
fn groups_are_prefixes_at_a_boundary() {
    assert!(in_group("kernel.kernels[0].variance", "kernel"));
    assert!(in_group("kernel.kernels[0].variance", "kernel.kernels[0]"));
    assert!(in_group("kernel.kernels[0].variance", "kernel.kernels"));
    assert!(!in_group("kernel.variance", "kernel.vari"));
}

#[test]
fn json_round_trips_priors_and_flags() {
    let mut p = Param::positive_vector(vec![0.3, 2.7]);
    assert_eq!(p.to_json(Transform::POSITIVE), serde_json::json!([0.3, 2.7]));
    p.prior = Some(Prior::Gamma { concentration: 2.0, rate: 3.0 });
    p.frozen = true;
    let json = p.to_json(Transform::POSITIVE);
    let mut q = Param::positive_vector(vec![1.0, 1.0]);
    q.read_json("kernel.lengthscales", &json).unwrap();
    assert_eq!(p, q);
    let nonsense =
        serde_json::json!({"prior": {"type": "gamma", "concentration": -2.0, "rate": 1.0}});
    let error = q.read_json("kernel.lengthscales", &nonsense).unwrap_err().to_string();
    assert!(error.contains("`concentration` is -2"), "{error}");
    let error = q.read_json("kernel.lengthscales", &serde_json::json!({"valeu": 1})).unwrap_err();
    assert!(error.to_string().contains("valeu"), "{error}");
}

fn of_json(mut param: Param, json: serde_json::Value) -> crate::error::Result<Param> {
    param.read_json("kernel.lengthscales", &json)?;
    Ok(param)
}

#[test]
fn bounds_are_read_and_written_and_keep_values_inside() {
    let json = serde_json::json!({"value": [0.3, 2.7], "min": 0.1, "max": 10.0});
    let p = of_json(Param::positive_vector(vec![1.0; 2]), json.clone()).unwrap();
    assert_eq!(p.transform(), Transform::Interval { lower: 0.1, upper: 10.0 });
    assert_eq!((p.natural(), p.value()), (Transform::POSITIVE, &[0.3, 2.7][..]));
    assert_eq!(p.to_json(Transform::POSITIVE), json);
    // one bound of either kind of parameter
    let one = |param: Param, json| of_json(param, json).unwrap().transform();
    let real = || Param::with(vec![0.5], Shape::Scalar, Transform::Identity);
    let min = serde_json::json!({"min": 0.2});
    let max = serde_json::json!({"max": 0.9, "min": null});
    assert_eq!(one(Param::positive(1.0), min.clone()), Transform::Softplus { lower: 0.2 });
    assert_eq!(one(real(), min), Transform::Softplus { lower: 0.2 });
    assert_eq!(one(real(), max.clone()), Transform::Below { upper: 0.9 });
    let upper = Transform::Interval { lower: 0.0, upper: 0.9 };
    assert_eq!(one(Param::positive(0.5), max), upper);
    // within the natural range of noise, which has its own lower bound
    let noise = Param::with(vec![0.5], Shape::Scalar, Transform::Softplus { lower: 1e-8 });
    let upper = Transform::Interval { lower: 1e-8, upper: 0.6 };
    assert_eq!(one(noise, serde_json::json!({"max": 0.6})), upper);
}

#[test]
fn bounds_that_cannot_be_are_refused_by_name() {
    let refused = |json| {
        let error = of_json(Param::positive_vector(vec![1.0; 2]), json).unwrap_err().to_string();
        assert!(error.contains("kernel.lengthscales"), "{error}");
        error
    };
    let error = refused(serde_json::json!({"min": 2.0, "max": 2.0}));
    assert!(error.contains("`min` is 2 and `max` is 2"), "{error}");
    for bad in [0.0, -1.0] {
        let error = refused(serde_json::json!({"min": bad}));
        assert!(
            error.contains(&format!("`min` is {bad}")) && error.contains("positive"),
            "{error}"
        );
    }
    let error = refused(serde_json::json!({"value": 11.0, "min": 0.1, "max": 10.0}));
    assert!(error.contains("11 is outside the interval (0.1, 10)"), "{error}");
    let error = refused(serde_json::json!({"min": "low"}));
    assert!(error.contains("`min` is a number, not \"low\""), "{error}");
}

#[test]
fn starting_values_beyond_a_bound_are_moved_near_it() {
    let of = |json, value: f64| {
        let mut p = of_json(Param::positive(1.0), json).unwrap();
        p.start(&[value]);
        p.scalar()
    };
    let both = serde_json::json!({"min": 0.5, "max": 2.0});
    // a twentieth of log 4 inside
    let near = 0.05 * 4_f64.ln();
    assert!((of(both.clone(), 0.01).ln() - (0.5_f64.ln() + near)).abs() < 1e-12);
    assert!((of(both.clone(), 70.0).ln() - (2_f64.ln() - near)).abs() < 1e-12);
    assert_eq!(of(both.clone(), 1.3), 1.3);
    for value in [-3.0, 0.0] {
        assert!((of(both.clone(), value).ln() - (0.5_f64.ln() + near)).abs() < 1e-12);
    }
    assert!((of(serde_json::json!({"min": 3.0}), 0.2) / 3.0 - 0.1_f64.exp()).abs() < 1e-12);
    assert!((of(serde_json::json!({"max": 3.0}), 9.0) * 0.1_f64.exp() - 3.0).abs() < 1e-12);
    // the present value too, when bounds come
    let p = of_json(Param::positive(1.0), serde_json::json!({"min": 3.0, "max": 4.0})).unwrap();
    assert!(p.scalar() > 3.0 && p.scalar() < 3.1, "{}", p.scalar());
}

#[test]
fn values_at_a_bound_are_reported() {
    let json = serde_json::json!({"value": [0.10004, 9.97, 0.2, 9.5], "min": 0.1, "max": 10.0});
    let p = of_json(Param::positive_vector(vec![1.0; 4]), json).unwrap();
    assert_eq!(p.at_bounds(), [(0, "min", 0.1), (1, "max", 10.0)]);
    let said = remarks(&[("kernel.lengthscales".into(), &p)]);
    assert!(said[0].starts_with("kernel.lengthscales[0] ended at its bound: it is 0.100040"));
    assert!(said[1].contains("`max` is 10") && said.len() == 2, "{said:?}");
    let mut frozen = p.clone();
    frozen.frozen = true;
    assert!(remarks(&[("kernel.lengthscales".into(), &frozen)]).is_empty());
    let real = Param::with(vec![-1.9995, 0.0], Shape::Vector(2), Transform::Identity);
    let real = of_json(real, serde_json::json!({"value": [-1.9995, 0.0], "min": -2.0})).unwrap();
    assert_eq!(real.at_bounds(), [(0, "min", -2.0)]);
}

#[test]
fn groups_are_written_and_read() {
    let mut param = Param::with(vec![1.0, 2.0, 3.0], Shape::Vector(3), Transform::POSITIVE);
    param.prior = Some(Prior::LogNormal { loc: 0.3, scale: 1.0 });
    (param.assumed, param.groups) = (true, vec![vec![0, 2]]);
    let json = param.to_json(Transform::POSITIVE);
    let fresh = || Param::with(vec![1.0; 3], Shape::Vector(3), Transform::POSITIVE);
    let mut back = fresh();
    back.read_json("p", &json).unwrap();
    assert_eq!((&back.groups, back.prior, back.assumed), (&param.groups, param.prior, true));
    for alike in [serde_json::json!([[0, 3]]), serde_json::json!([[0, 1], [1, 2]])] {
        let mut damaged = json.clone();
        damaged["alike"] = alike;
        let error = fresh().read_json("p", &damaged).unwrap_err().to_string();
        assert!(error.contains("alike"), "{error}");
    }
}

/// Alike numbers move together for the price of one and apart for that of many; slopes against differences.
#[test]
fn a_group_of_alike_numbers_has_one_place() {
    let prior = Prior::LogNormal { loc: 1.3, scale: 0.8 };
    let of = |values: &[f64]| {
        let mut param = Param::with(values.to_vec(), Shape::Vector(5), Transform::POSITIVE);
        param.prior = Some(prior);
        param.groups = vec![vec![0, 2, 3]];
        let mut gradient = vec![0.0; 5];
        let value = log_prior(|visitor| visitor(&"p", &param), &mut gradient);
        (value, gradient)
    };
    let mode = (1.3_f64 - 0.64).exp();
    let start = [mode, 0.7, mode, mode, 3.1];
    let (most, gradient) = of(&start);
    assert!([0, 2, 3].iter().all(|at| gradient[*at].abs() < 1e-12), "{gradient:?}");
    // (log 2)² · 3 / 2(0.3² + 3 · 0.8²) together, nearly as one number: (log 2)² / 2·0.8²
    let together = most - of(&[2.0 * mode, 0.7, 2.0 * mode, 2.0 * mode, 3.1]).0;
    let expected = 1.5 * 2_f64.ln().powi(2) / (0.09 + 3.0 * 0.64);
    assert!((together - expected).abs() < 1e-12, "{together} {expected}");
    assert!(most - of(&[2.0 * mode, 0.7, mode, 0.5 * mode, 3.1]).0 > 5.0 * together);
    let own = [1.1, 0.9, 2.7, 3.0, 2.2];
    let (_, gradient) = of(&own);
    for at in 0..5 {
        let moved = |by: f64| {
            let mut values = own;
            values[at] += by;
            of(&values).0
        };
        let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        assert!((slope - gradient[at]).abs() < 1e-8 * (1.0 + slope.abs()), "{at}: {slope}");
    }
}

/// Of x = λ z τ with λ half-Cauchy: integrals over λ by a fine rule.
#[test]
fn the_horseshoe_is_the_mixture_that_it_is_said_to_be() {
    for (x, scale) in [(0.01, 1.3), (0.4, 0.7), (2.5, 0.3), (40.0, 2.0)] {
        let (n, mut density) = (200_000, 0.0);
        for k in 0..n {
            // λ = tan φ: φ is uniform between 0 and π/2
            let deviation = scale * (0.5 * PI * (f64::from(k) + 0.5) / f64::from(n)).tan();
            let z: f64 = x / deviation;
            density += (-0.5 * z * z).exp() / deviation / (2.0 * PI).sqrt() / f64::from(n);
        }
        let own = Prior::Horseshoe { scale }.log_density(x);
        assert!((own - density.ln()).abs() < 1e-6, "{x}: {own} and {}", density.ln());
        assert_eq!(Prior::Horseshoe { scale }.log_density(-x), own);
    }
    assert!(Prior::Horseshoe { scale: 1.0 }.log_density(0.0).is_finite());
}

#[test]
fn draws_of_priors_have_their_distributions() {
    let mut rng = crate::rng::stream(3, "draws");
    let (n, scale) = (40_000, 0.6);
    let mut below = |prior: Prior, limit: f64| {
        let count = (0..n).filter(|_| prior.sample(&mut rng).abs() < limit).count();
        count as f64 / f64::from(n)
    };
    assert!((below(Prior::HalfCauchy { scale }, scale) - 0.5).abs() < 0.01);
    assert!((below(Prior::Uniform { low: 1.0, high: 3.0 }, 1.5) - 0.25).abs() < 0.01);
    // ∫ over the density
    let inside: f64 = (0..100_000)
        .map(|i| {
            2.0 * Prior::Horseshoe { scale }.log_density((f64::from(i) + 0.5) * 1e-5).exp() * 1e-5
        })
        .sum();
    assert!((below(Prior::Horseshoe { scale }, 1.0) - inside).abs() < 0.01);
}

#[test]
fn a_uniform_prior_bounds_its_parameter() {
    let mut p = Param::positive(7.0);
    let uniform = |low, high| Some(Prior::Uniform { low, high });
    p.set_prior("p", uniform(0.5, 3.0)).unwrap();
    assert_eq!((p.bounds().min, p.bounds().max), (Some(0.5), Some(3.0)));
    assert!(p.scalar() < 3.0);
    let mut back = Param::positive(1.0);
    back.read_json("p", &p.to_json(Transform::POSITIVE)).unwrap();
    assert_eq!(back.to_json(Transform::POSITIVE), p.to_json(Transform::POSITIVE));
    // what a positive number has by nature is not a bound
    p.set_prior("p", uniform(0.0, 2.0)).unwrap();
    assert_eq!((p.bounds().min, p.bounds().max), (None, Some(2.0)));
    p.set_prior("p", Some(Prior::HalfCauchy { scale: 1.0 })).unwrap();
    assert!(!p.bounds().any());
    // its own narrower bounds stay
    let json = serde_json::json!({"value": 1.5, "min": 1.0, "prior": {"type": "uniform", "low": 0.5, "high": 3.0}});
    p.read_json("p", &json).unwrap();
    assert_eq!((p.bounds().min, p.bounds().max), (Some(1.0), Some(3.0)));
    for (low, high) in [(2.0, 1.0), (0.0, f64::INFINITY), (-3.0, -1.0)] {
        let error = Param::positive(1.0).set_prior("p", uniform(low, high)).unwrap_err();
        assert!(error.to_string().contains("prior: "), "{error}");
    }
}
