//! Kernels of groups.

use super::tests::value;
use super::*;
use crate::linalg::Mat;

fn of(spec: &str) -> Box<dyn Kernel> {
    parse(spec, Inputs::unnamed(2)).unwrap()
}

/// Groups are those of coregion with W the same for all, whatever their labels; a group that is new has what is common.
#[test]
fn groups_are_exchangeable_labels() {
    let label = |i: usize| [2.0, 0.0, 1.0, 1.0, 2.0, 0.0, 2.0][i % 7];
    let x = Mat::from_fn(11, 2, |i, q| if q == 1 { label(i) } else { (1.7 * i as f64).sin() });
    let z = Mat::from_fn(6, 2, |i, q| if q == 1 { label(2 * i) } else { (0.9 * i as f64).cos() });
    let groups =
        of("categorical(variance=1.6, similarity=0.25, active_dims=[1]) * rbf(lengthscales=[0.7])");
    let (w, kappa) = ((1.6_f64 * 0.25).sqrt(), 1.6 * 0.75);
    let labels = format!(
        "coregion(W=[[{w}], [{w}], [{w}]], kappa=[{kappa}, {kappa}, {kappa}], active_dims=[1]) \
         * rbf(lengthscales=[0.7], active_dims=[0])"
    );
    for z in [None, Some(z.as_ref())] {
        let (own, other) = (value(&*groups, x.as_ref(), z), value(&*of(&labels), x.as_ref(), z));
        assert!((own - other).norm_max() < 1e-15);
    }
    crate::testing::check_kernel(&*groups, x.as_ref(), z.as_ref()).unwrap();
    let plain = of("rbf + categorical(active_dims=[1])");
    crate::testing::check_kernel(&*plain, x.as_ref(), z.as_ref()).unwrap();
    // others leave the groups out, also where they are read back
    assert_eq!(plain.to_json()["kernels"][0]["active_dims"], serde_json::json!([0]));
    assert_eq!(build(&plain.to_json(), Inputs::unnamed(2)).unwrap().to_json(), plain.to_json());
    let new = Mat::from_fn(1, 2, |_, q| if q == 1 { 17.5 } else { 0.3 });
    let at = value(
        &*of("categorical(variance=1.6, similarity=0.25, active_dims=[1])"),
        x.as_ref(),
        Some(new.as_ref()),
    );
    assert!((0..11).all(|i| at[(i, 0)] == 1.6 * 0.25));
}
