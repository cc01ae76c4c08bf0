//! Real data almost without noise, with columns of few distinct values: neither the pilot nor the
//! training may end where everything is noise.

use sparsegp::data::{Mask, Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, fit};
use std::path::Path;
use std::sync::Arc;

#[test]
fn a_fit_to_bike_rentals_explains_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/data");
    let table = Table::open(folder.join("bike.csv.gz")).expect("the data set");
    let selected = table.select(&Selection::targets(["y"])).expect("a column y");
    let rows = selected.count_rows().expect("rows");
    let pick = |from: usize| {
        let flags = (0..rows).map(|i| i % 6 == from);
        selected.clone().rows_where(Arc::new(Mask::new("every sixth", flags)), true)
    };
    let training = pick(0).read_all().expect("rows");
    let dataset = Dataset::from_loaded(training, true).expect("usable rows");
    let mut options = FitOptions {
        method: "titsias2025".into(),
        inducing: Some(60),
        pilot: 400,
        ..FitOptions::default()
    };
    options.train.max_iterations = 25;
    let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("a fit");
    let blocks = pick(3).blocks(1024, None).expect("rows");
    let scores = fitted.score(blocks).and_then(|m| m.finish()).expect("scores");
    assert!(scores.r2.expect("targets that vary") > 0.9, "{scores:?}");
    // far below the trivial model's loss: the noise is known to be small
    assert!(scores.msll.expect("targets that vary") < -1.2, "{scores:?}");
}
