//! Methods that flows are compared with.

use super::*;
use crate::flow::compared::*;
use crate::flow::targets::{Banana, Logistic, Network};
use crate::linalg::column;

fn banana() -> Banana {
    Banana::new(0.4, 0.7, 0.3, 1.0).unwrap()
}

fn plain(rate: f64) -> DescentOptions {
    DescentOptions { rate, rule: Rule::Plain, ..DescentOptions::default() }
}

fn lower() -> Mat<f64> {
    Mat::from_fn(2, 2, |i, j| [[0.7, 0.0], [-0.4, 1.2]][i][j])
}

/// Gradients of DSVI and of FCS with the closed entropy by differences of F at the same draws.
#[test]
fn gradients_are_those_of_the_free_energy() {
    let (h, mean) = (1e-5, vec![0.2, 0.5]);
    let (e, z) = (normals(2, 6, 1), normals(1, 6, 2));
    let difference = |value: &dyn Fn(f64) -> f64| (value(h) - value(-h)) / (2.0 * h);
    let whole = |mean: Vec<f64>, l: Mat<f64>| {
        let own = Dsvi::new(mean, Root::Lower(l), plain(0.1)).unwrap();
        own.gradient(&mut banana(), e.as_ref()).unwrap()
    };
    let own = whole(mean.clone(), lower());
    let Root::Lower(by_root) = &own.root else { panic!("another shape") };
    for (i, j) in [(0, 0), (1, 0), (1, 1)] {
        let value = |by: f64| {
            let mut l = lower();
            l[(i, j)] += by;
            whole(mean.clone(), l).free_energy
        };
        close(by_root[(i, j)], difference(&value), 1e-8);
    }
    assert_eq!(by_root[(0, 1)], 0.0);
    let sigma = vec![0.6, 1.3];
    let diagonal = |mean: Vec<f64>, sigma: Vec<f64>| {
        let own = Dsvi::new(mean, Root::Diagonal(sigma), plain(0.1)).unwrap();
        own.gradient(&mut banana(), e.as_ref()).unwrap()
    };
    let own = diagonal(mean.clone(), sigma.clone());
    let Root::Diagonal(by_sigma) = &own.root else { panic!("another shape") };
    let (b, d) = (normals(2, 1, 3), vec![0.5, 0.8]);
    let fcs = |mean: Vec<f64>, b: Mat<f64>, d: Vec<f64>| {
        let own = Fcs::new(mean, b, d, Entropy::Closed, plain(0.1)).unwrap();
        own.gradient(&mut banana(), z.as_ref(), e.as_ref()).unwrap()
    };
    let factored = fcs(mean.clone(), b.clone(), d.clone());
    for i in 0..2 {
        let moved = |v: &[f64], by: f64| {
            let mut v = v.to_vec();
            v[i] += by;
            v
        };
        let value = |by: f64| diagonal(moved(&mean, by), sigma.clone()).free_energy;
        close(own.mean[i], difference(&value), 1e-8);
        let value = |by: f64| diagonal(mean.clone(), moved(&sigma, by)).free_energy;
        close(by_sigma[i], difference(&value), 1e-8);
        let value = |by: f64| fcs(moved(&mean, by), b.clone(), d.clone()).free_energy;
        close(factored.mean[i], difference(&value), 1e-8);
        let value = |by: f64| fcs(mean.clone(), b.clone(), moved(&d, by)).free_energy;
        close(factored.d[i], difference(&value), 1e-8);
        let value = |by: f64| {
            let mut b = b.clone();
            b[(i, 0)] += by;
            fcs(mean.clone(), b, d.clone()).free_energy
        };
        close(factored.b[(i, 0)], difference(&value), 1e-8);
    }
}

/// Without columns of B, FCS is diagonal DSVI.
#[test]
fn mean_field_structures_agree() {
    let (e, mean, sigma) = (normals(2, 6, 1), vec![0.2, 0.5], vec![0.6, 1.3]);
    let dsvi = Dsvi::new(mean.clone(), Root::Diagonal(sigma.clone()), plain(0.1)).unwrap();
    let own = dsvi.gradient(&mut banana(), e.as_ref()).unwrap();
    let fcs = Fcs::new(mean, Mat::zeros(2, 0), sigma, Entropy::Closed, plain(0.1)).unwrap();
    let other = fcs.gradient(&mut banana(), Mat::zeros(0, 6).as_ref(), e.as_ref()).unwrap();
    all_close(&own.mean, &other.mean, 1e-14);
    let Root::Diagonal(by_sigma) = own.root else { panic!("another shape") };
    all_close(&by_sigma, &other.d, 1e-14);
    close(own.free_energy, other.free_energy, 1e-14);
}

/// The sampled entropy has no noise at a Gaussian optimum inside the family; starts from covariances are exact.
#[test]
fn sampled_entropies_have_no_noise_at_the_optimum() {
    let (mean, sigma, mut target) = gaussian(4, 9.0, 5);
    let start = |rank: usize, entropy: Entropy| {
        Fcs::of_covariance(mean.clone(), sigma.as_ref(), rank, entropy, plain(0.1)).unwrap()
    };
    let fcs = start(4, Entropy::Sampled);
    assert!(largest((fcs.covariance() - &sigma).as_ref()) < 1e-12);
    let (z, e) = (normals(4, 3, 1), normals(4, 3, 2));
    let own = fcs.gradient(&mut target, z.as_ref(), e.as_ref()).unwrap();
    assert!(largest(own.b.as_ref()) < 1e-11 && own.d.iter().all(|d| d.abs() < 1e-11));
    let own = start(4, Entropy::Closed).gradient(&mut target, z.as_ref(), e.as_ref()).unwrap();
    assert!(largest(own.b.as_ref()) > 1e-2);
    // fewer columns have the variances, but for a floor of half the least eigenvalue
    let fcs = start(2, Entropy::Closed);
    let (values, _) = crate::linalg::symmetric_eigen(sigma.as_ref()).unwrap();
    for i in 0..4 {
        let more = fcs.covariance()[(i, i)] - sigma[(i, i)];
        assert!(more > -1e-12 && more < 0.5 * values[0] + 1e-12, "{more}");
    }
    let Factor::Whole(low) = Factor::of_covariance(sigma.as_ref(), 2).unwrap() else {
        panic!("another shape")
    };
    let gram = product(low.transpose(), low.as_ref());
    all_close(&[gram[(0, 0)], gram[(1, 1)], gram[(0, 1)]], &[values[3], values[2], 0.0], 1e-12);
    assert!(Factor::of_covariance(sigma.as_ref(), 5).is_err());
}

/// All come near the same Gaussian.
#[test]
fn methods_come_near_a_gaussian() {
    let (mean, sigma, mut target) = gaussian(3, 4.0, 2);
    let off = |own: &[f64]| own.iter().zip(&mean).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    let schedule = Schedule::Power { after: 300.0, exponent: 0.9 };
    let options = DescentOptions { schedule, ..plain(0.05) };
    let identity = Mat::<f64>::identity(3, 3);
    let mut dsvi = Dsvi::new(vec![0.0; 3], Root::Lower(identity.clone()), options.clone()).unwrap();
    flow(&mut dsvi, &mut target, 5000);
    let Root::Lower(l) = dsvi.root() else { panic!("another shape") };
    let found = product(l.as_ref(), l.transpose());
    assert!(off(dsvi.mean()) < 0.05 && largest((found - &sigma).as_ref()) < 0.15);
    for entropy in [Entropy::Closed, Entropy::Sampled] {
        let start = identity.as_ref();
        let fcs = Fcs::of_covariance(vec![0.0; 3], start, 3, entropy, options.clone());
        let mut fcs = fcs.unwrap();
        flow(&mut fcs, &mut target, 5000);
        let error = largest((fcs.covariance() - &sigma).as_ref());
        assert!(off(fcs.mean()) < 0.05 && error < 0.15, "{entropy:?} {error}");
    }
    for (curvature, tolerance) in [(Curvature::Hessian, 1e-9), (Curvature::Reparameterised, 0.3)] {
        let options = IblrOptions { rate: 0.02, curvature, ..IblrOptions::default() };
        let start = Precision::Whole(identity.clone());
        let mut iblr = Iblr::new(vec![0.0; 3], start, options).unwrap();
        flow(&mut iblr, &mut target, 3000);
        let error = largest((iblr.covariance().unwrap() - &sigma).as_ref());
        assert!(off(iblr.mean()) < 0.1 && error < tolerance, "{curvature:?} {error}");
    }
    // coordinate by coordinate the precision is the diagonal of Λ
    let (_, precision) = covariance(3, 2.0, 4.0, 2);
    let options =
        IblrOptions { rate: 0.02, curvature: Curvature::Hessian, ..IblrOptions::default() };
    let mut iblr = Iblr::new(vec![0.0; 3], Precision::Diagonal(vec![1.0; 3]), options).unwrap();
    flow(&mut iblr, &mut target, 3000);
    let Precision::Diagonal(p) = iblr.precision() else { panic!("another shape") };
    (0..3).for_each(|i| close(p[i], precision[(i, i)], 1e-9));
    let svgd = SvgdOptions { rate: 0.1, rule: Rule::Plain, ..SvgdOptions::default() };
    let mut svgd = Svgd::new(Particles::new(normals(3, 30, 1)).unwrap(), svgd).unwrap();
    flow(&mut svgd, &mut target, 3000);
    assert!(off(&svgd.particles().mean()) < 0.05);
}

/// A curvature that is negative somewhere keeps the precision positive definite.
#[test]
fn precisions_stay_positive_definite() {
    let options = IblrOptions { rate: 0.9, draws: 1, ..IblrOptions::default() };
    for curvature in [Curvature::Hessian, Curvature::Reparameterised] {
        let options = IblrOptions { curvature, ..options.clone() };
        let start = Precision::Whole(Mat::<f64>::identity(2, 2));
        let mut iblr = Iblr::new(vec![3.0, -4.0], start, options).unwrap();
        for step in 0..5 {
            iblr.advance(&mut Banana::default(), step).unwrap();
            assert!(iblr.covariance().is_ok());
        }
    }
}

/// Stein flows against their sums; with the centred linear kernel they are the flow of Gaussian particles.
#[test]
fn stein_flows_are_their_sums() {
    for count in [3, 7] {
        let particles = Particles::new(normals(2, count, 4)).unwrap();
        let x = particles.x();
        let g = Evaluation::of(&mut banana(), x).unwrap().gradient;
        let field = Field::new(x, g.as_ref(), &Blocks::Whole, MeanFlow::Plain).unwrap();
        let whole = particles::shifted(field.spread.clone(), &field.mean);
        let own = SvgdKernel::CentredLinear.flow(x, g.as_ref()).unwrap();
        assert!(largest((own - whole).as_ref()) < 1e-13);
        for length in [None, Some(0.7)] {
            let kernel = SvgdKernel::SquaredExponential { length };
            let l = kernel.length(x).unwrap().unwrap();
            let own = kernel.flow(x, g.as_ref()).unwrap();
            let linear = SvgdKernel::Linear.flow(x, g.as_ref()).unwrap();
            for k in 0..count {
                for i in 0..2 {
                    let (mut sum, mut other) = (0.0, 0.0);
                    for j in 0..count {
                        let (a, b) = (column(x, j), column(x, k));
                        let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
                        let value = (-0.5 * square / (l * l)).exp();
                        sum -= value * g[(i, j)] + value * (a[i] - b[i]) / (l * l);
                        let inner: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                        other += b[i] - (inner + 1.0) * g[(i, j)];
                    }
                    close(own[(i, k)], sum / count as f64, 1e-12);
                    close(linear[(i, k)], other / count as f64, 1e-12);
                }
            }
        }
    }
}

/// The linear kernel diverges for off-centre densities; the last finite particles come back. Small steps at the start
/// help.
#[test]
fn divergence_is_reported() {
    let (_, _, mut target) = gaussian(3, 2.0, 1);
    let start = || Particles::new(normals(3, 6, 2) * faer::Scale(20.0)).unwrap();
    let options = SvgdOptions {
        kernel: SvgdKernel::Linear,
        rate: 0.5,
        rule: Rule::Plain,
        ..SvgdOptions::default()
    };
    let mut svgd = Svgd::new(start(), options).unwrap();
    let report = flow(&mut svgd, &mut target, 500);
    assert!(matches!(report.ended, Ended::Restored { .. }), "{:?}", report.ended);
    assert!(svgd.is_finite() && Evaluation::of(&mut target, svgd.particles().x()).is_ok());
    let wild = DescentOptions { rate: 1e3, rule: Rule::Plain, ..DescentOptions::default() };
    let root = Root::Lower(Mat::<f64>::identity(2, 2));
    let mut dsvi = Dsvi::new(vec![0.0; 2], root, wild.clone()).unwrap();
    let report = flow(&mut dsvi, &mut Banana::default(), 500);
    assert!(matches!(report.ended, Ended::Restored { .. }), "{:?}", report.ended);
    assert!(dsvi.is_finite());
    let (b, d) = (Mat::full(2, 1, 0.3), vec![1.0; 2]);
    let mut fcs = Fcs::new(vec![0.0; 2], b, d, Entropy::Sampled, wild).unwrap();
    let report = flow(&mut fcs, &mut Banana::default(), 500);
    assert!(matches!(report.ended, Ended::Restored { .. }), "{:?}", report.ended);
    assert!(fcs.is_finite() && fcs.factors().1.iter().all(|d| *d > 0.0));
}

/// Modes of all rows and of minibatches, and the Hessian there.
#[test]
fn modes_and_their_hessians() {
    let (mean, sigma, mut target) = gaussian(4, 9.0, 5);
    let mode = map(&mut target, &[0.0; 4], &MapOptions::default()).unwrap();
    assert!(mode.converged && mode.slope < 1e-6);
    all_close(&mode.position, &mean, 1e-7);
    let laplace = Laplace::at(&mut target, mode).unwrap();
    assert!(largest((laplace.covariance() - &sigma).as_ref()) < 1e-12);
    let root = laplace.root();
    assert!(largest((product(root.as_ref(), root.transpose()) - &sigma).as_ref()) < 1e-12);
    let expected = 0.5 * log_det(sigma.as_ref()) + 2.0 * std::f64::consts::TAU.ln();
    close(laplace.log_evidence(), expected, 1e-12);
    let draws = Particles::new(laplace.draw(40_000, &mut stream(1, "test"))).unwrap();
    assert!(largest((draws.covariance() - &sigma).as_ref()) < 0.05 * largest(sigma.as_ref()));
    // where the curvature is negative there is no mode
    let hill = Map { position: vec![2.0, -20.0], phi: 0.0, slope: 0.0, converged: false };
    let error = Laplace::at(&mut Banana::default(), hill).unwrap_err();
    assert!(error.to_string().contains("not a mode"), "{error}");
    let labels = (0..40).map(|i| if i % 3 == 1 { 1.0 } else { -1.0 }).collect();
    let whole = Logistic::new(normals(40, 3, 1), labels, 2.3).unwrap();
    let mode = map(&mut whole.clone(), &[0.0; 3], &MapOptions::default()).unwrap();
    let schedule = Schedule::Power { after: 300.0, exponent: 0.9 };
    let options = MapOptions { steps: 4000, rate: 0.05, schedule };
    let noisy = map(&mut whole.in_batches(10, 3).unwrap(), &[0.0; 3], &options).unwrap();
    assert!(!noisy.converged);
    noisy.position.iter().zip(&mode.position).for_each(|(a, b)| close(*a, *b, 0.05));
}

/// Moments of a walk against their definitions; a walk around a mode.
#[test]
fn averages_of_walks() {
    let mut moments = SwagMoments::new(2, 3).unwrap();
    assert!(moments.combined(&[0.0; 2], &[0.0; 3]).unwrap_err().to_string().contains("need two"));
    let x = normals(2, 7, 1);
    for n in 0..7 {
        moments.collect(column(x.as_ref(), n)).unwrap();
    }
    let mean_of = |to: usize, i: usize| (0..to).map(|n| x[(i, n)]).sum::<f64>() / to as f64;
    for i in 0..2 {
        close(moments.mean()[i], mean_of(7, i), 1e-14);
        let square = (0..7).map(|n| x[(i, n)].powi(2)).sum::<f64>() / 7.0;
        close(moments.variances()[i], square - mean_of(7, i).powi(2), 1e-13);
        for k in 0..3 {
            let expected = x[(i, 4 + k)] - mean_of(5 + k, i);
            close(moments.deviations()[(i, k)], expected, 1e-14);
        }
    }
    let draws = moments.draw(40_000, &mut stream(3, "test")).unwrap();
    let draws = Particles::new(draws).unwrap();
    all_close(&draws.mean(), moments.mean(), 0.03);
    let labels = (0..40).map(|i| if i % 3 == 1 { 1.0 } else { -1.0 }).collect();
    let mut target = Logistic::new(normals(40, 3, 1), labels, 2.3).unwrap();
    let mode = map(&mut target, &[0.0; 3], &MapOptions::default()).unwrap();
    let options = SwagOptions { rate: 0.2, every: 5, rows: 40, ..SwagOptions::default() };
    let mut swag = Swag::new(mode.position.clone(), options).unwrap();
    flow(&mut swag, &mut target.in_batches(8, 1).unwrap(), 2000);
    assert_eq!(swag.moments().count(), 400);
    swag.moments().mean().iter().zip(&mode.position).for_each(|(a, b)| close(*a, *b, 0.1));
    assert!(swag.moments().variances().iter().all(|v| *v > 0.0));
}

/// Layers of low rank learn classes, and their bound falls.
#[test]
fn layers_of_low_rank_learn() {
    let x = normals(30, 2, 3);
    let classes = (0..30).map(|i| usize::from(x[(i, 0)] > 0.2 * x[(i, 1)])).collect();
    let mut network = Network::new(vec![2, 4, 2], x.clone(), classes, 1.0).unwrap();
    let start = normals(network.dim(), 1, 5) * faer::Scale(0.3);
    let options = DescentOptions { rate: 0.02, draws: 2, ..DescentOptions::default() };
    let start = start.col_as_slice(0);
    let mut own = Elrgvi::new(&network, start, 0.2, 2, options).unwrap();
    let every = RunOptions { steps: 600, ..RunOptions::default() };
    let watch = &mut |_: usize, _: &Progress| std::ops::ControlFlow::Continue(());
    let report = own.run(&mut network, &every, watch).unwrap();
    assert_eq!(report.ended, Ended::AllSteps);
    let mean = |from: usize| {
        let part = &report.trace[from..from + 50];
        part.iter().map(|(_, p)| p.free_energy.unwrap()).sum::<f64>() / 50.0
    };
    assert!(mean(550) < 0.7 * mean(0), "{} {}", mean(550), mean(0));
    let found = own.probabilities(x.as_ref(), 20, &mut stream(1, "test")).unwrap();
    let right =
        (0..30).filter(|i| (found[(*i, 1)] > 0.5) == (x[(*i, 0)] > 0.2 * x[(*i, 1)])).count();
    assert!(right >= 26, "{right}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let text = |error: crate::Error| error.to_string();
    let dsvi = |root: Root| text(Dsvi::new(vec![0.0; 2], root, plain(0.1)).unwrap_err());
    assert!(dsvi(Root::Diagonal(vec![1.0])).contains("2 dimensions"));
    assert!(dsvi(Root::Diagonal(vec![1.0, 0.0])).contains("above 0"));
    assert!(dsvi(Root::Lower(Mat::full(2, 2, 1.0))).contains("lower triangular"));
    assert!(dsvi(Root::Lower(Mat::full(2, 2, f64::NAN))).contains("not finite"));
    let none = DescentOptions { draws: 0, ..plain(0.1) };
    let error = Dsvi::new(vec![0.0; 2], Root::Diagonal(vec![1.0; 2]), none).unwrap_err();
    assert!(text(error).contains("one draw"));
    let own = Dsvi::new(vec![0.0; 2], Root::Diagonal(vec![1.0; 2]), plain(0.1)).unwrap();
    assert!(own.gradient(&mut banana(), Mat::zeros(3, 2).as_ref()).is_err());
    let fcs = |b: Mat<f64>, d: Vec<f64>| {
        text(Fcs::new(vec![0.0; 2], b, d, Entropy::Closed, plain(0.1)).unwrap_err())
    };
    assert!(fcs(Mat::zeros(3, 1), vec![1.0; 2]).contains("rows of B"));
    assert!(fcs(Mat::zeros(2, 1), vec![1.0, -1.0]).contains("above 0"));
    let flat = Mat::zeros(2, 2);
    let error = Fcs::of_covariance(vec![0.0; 2], flat.as_ref(), 1, Entropy::Closed, plain(0.1));
    assert!(text(error.unwrap_err()).contains("positive definite"));
    let iblr = |precision: Precision, rate: f64| {
        let options = IblrOptions { rate, ..IblrOptions::default() };
        text(Iblr::new(vec![0.0; 2], precision, options).unwrap_err())
    };
    assert!(iblr(Precision::Diagonal(vec![1.0, 0.0]), 0.1).contains("above 0"));
    assert!(iblr(Precision::Diagonal(vec![1.0; 2]), 1.5).contains("at most 1"));
    assert!(iblr(Precision::Whole(-Mat::<f64>::identity(2, 2)), 0.1).contains("positive definite"));
    let particles = || Particles::new(normals(2, 4, 1)).unwrap();
    let kernel = SvgdKernel::SquaredExponential { length: Some(-1.0) };
    let options = SvgdOptions { kernel, ..SvgdOptions::default() };
    assert!(text(Svgd::new(particles(), options).unwrap_err()).contains("above 0"));
    let same = Mat::from_fn(2, 5, |_, n| f64::from(u8::from(n == 0)));
    let kernel = SvgdKernel::SquaredExponential { length: None };
    assert!(text(kernel.length(same.as_ref()).unwrap_err()).contains("coincide"));
    assert!(text(SwagMoments::new(2, 1).unwrap_err()).contains("at least two"));
    let options = SwagOptions { momentum: 1.0, ..SwagOptions::default() };
    assert!(text(Swag::new(vec![0.0; 2], options).unwrap_err()).contains("below 1"));
    assert!(map(&mut banana(), &[0.0; 3], &MapOptions::default()).is_err());
    assert!(map(&mut banana(), &[f64::NAN; 2], &MapOptions::default()).is_err());
    let layer = |mean: usize, sigma: f64, v: Mat<f64>| {
        text(ElrgviLayer::new(2, vec![0.0; mean], vec![sigma; mean], v).unwrap_err())
    };
    assert!(layer(4, 1.0, Mat::zeros(4, 1)).contains("a bias"));
    assert!(layer(3, 0.0, Mat::zeros(3, 1)).contains("above 0"));
    assert!(layer(3, 1.0, Mat::zeros(3, 0)).contains("K ≥ 1"));
    // a network knows no second derivatives
    let mut network = Network::new(vec![1, 2], Mat::zeros(1, 1), vec![0], 1.0).unwrap();
    let mut other = Network::new(vec![1, 3], Mat::zeros(1, 1), vec![2], 1.0).unwrap();
    let mut layers = Elrgvi::new(&network, &[0.1; 4], 0.5, 1, plain(0.1)).unwrap();
    assert!(text(layers.advance(&mut other, 0).unwrap_err()).contains("4 parameters"));
    let none = layers.probabilities(Mat::zeros(1, 1).as_ref(), 0, &mut stream(0, "test"));
    assert!(text(none.unwrap_err()).contains("no mean"));
    assert!(network.probabilities(Mat::zeros(4, 0).as_ref(), Mat::zeros(1, 1).as_ref()).is_err());
    assert!(own.gradient(&mut banana(), Mat::zeros(2, 0).as_ref()).is_err());
    let options = IblrOptions { curvature: Curvature::Hessian, ..IblrOptions::default() };
    let mut own = Iblr::new(vec![0.0; 4], Precision::Diagonal(vec![1.0; 4]), options).unwrap();
    assert!(text(own.advance(&mut network, 0).unwrap_err()).contains("second derivatives"));
}

/// Steps that were cut where d would have left the numbers above 0 made it ever smaller, until Σ⁻¹ was lost.
#[test]
fn factors_do_not_get_lost_where_d_vanishes() {
    let dim = 5;
    let (mean, sigma, mut target) = gaussian(dim, 10.0, 3);
    let options = DescentOptions { rate: 0.01, draws: dim, ..DescentOptions::default() };
    let start = Mat::<f64>::identity(dim, dim);
    let zeros = vec![0.0; dim];
    let mut fcs =
        Fcs::of_covariance(zeros, start.as_ref(), dim, Entropy::Sampled, options).unwrap();
    for step in 0..6000 {
        fcs.advance(&mut target, step).unwrap();
        assert!(fcs.is_finite() && fcs.factors().1.iter().all(|d| *d >= 0.0));
    }
    let apart = (fcs.covariance() - &sigma).norm_l2() / sigma.norm_l2();
    assert!(apart < 0.15, "{apart}");
    let off: f64 = fcs.mean().iter().zip(&mean).map(|(a, b)| (a - b).powi(2)).sum();
    assert!(off.sqrt() < 0.15, "{off}");
}
